#pragma once
#include "kiln/core/literal.hpp"
#include "kiln/runtime/fallback_kernel.hpp"

namespace kiln::quantize::detail {

/// The tensor, or a row-major copy of it that `room` holds.
inline tensor dense_tensor(const tensor& t, buffer& room) {
  if (t.dense()) return t;
  tensor to{nullptr, t.type, t.lens, row_major(t.lens)};
  room = buffer::allocate(static_cast<std::size_t>(t.elements()) * size_of(t.type));
  to.data = room.data();
  copy_tensor(t, to, nullptr);
  return to;
}

/// Calls `f(std::span<const T>)` for the elements [begin, end) of a row-major tensor of floats, block by block: T is
/// double for f64, else float.
template <class F> void for_each_block(const tensor& dense, std::int64_t begin, std::int64_t end, F&& f) {
  constexpr std::int64_t most = 4096;
  const auto bytes = static_cast<std::int64_t>(size_of(dense.type));
  if (dense.type == dtype::f64)
    return f(std::span(dense.as<const double>() + begin, static_cast<std::size_t>(end - begin)));
  if (dense.type == dtype::f32)
    return f(std::span(dense.as<const float>() + begin, static_cast<std::size_t>(end - begin)));
  float room[most];
  for (; begin < end; begin += most) {
    const std::int64_t count = end - begin < most ? end - begin : most;
    decode(dense.type, dense.data + begin * bytes, room, count);
    f(std::span<const float>(room, static_cast<std::size_t>(count)));
  }
}

}  // namespace kiln::quantize::detail
