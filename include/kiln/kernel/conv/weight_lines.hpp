#pragma once

#include <algorithm>
#include <cstring>

#include "kiln/kernel/simd/transpose.hpp"

namespace kiln::kernels {

/// Weights of several filters, a lane for each: to[j * lanes + i] is element j of line i < `lines`, of which each has
/// `count` elements, at most `Most`, and begins `step` elements after the one before; zero where there is no line i.
/// `from` may be any address, as constants of a mapped file have.
template <std::int64_t Most, class T>
void lines_to_lanes(const std::byte* from, std::ptrdiff_t step, std::int64_t lines, std::int64_t count, T* to) {
  constexpr std::int64_t lanes = native_lanes<T>, most = Most * lanes;
  const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
  alignas(64) T block[most];
  for (std::int64_t i = 0; i < lines; ++i)
    std::memcpy(block + i * count, from + i * step * static_cast<std::ptrdiff_t>(sizeof(T)), bytes);
  if (lines < lanes) std::fill_n(block + lines * count, (lanes - lines) * count, T(0));
  transpose_block(block, count, to, lanes, lanes, count);
}

}  // namespace kiln::kernels
