#pragma once
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/core/narrow.hpp"

// Numbers of at most eight bits as elements: core's own storage types, converted where they are read and written.

namespace kiln::gpu {

template <kiln::detail::narrow_format F> struct short_number<small_float<F>> {
  using given = float;
  using computed = float;
};
template <> struct short_number<float8_e8m0> {
  using given = float;
  using computed = float;
};
template <int Bits> struct short_number<small_integer<Bits, std::int64_t>> {
  using given = std::int64_t;
  using computed = i64;
};
template <int Bits> struct short_number<small_integer<Bits, std::uint64_t>> {
  using given = std::uint64_t;
  using computed = u64;
};

}  // namespace kiln::gpu
