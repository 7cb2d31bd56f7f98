#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>

namespace kiln::lower {

/// The buffers that share an arena, by number: `bytes(b)`, `offset(b)`, which is assigned, and whether two are in use
/// at the same time.
template <class Buffers>
concept arena_buffers = requires(Buffers& all, std::uint32_t b) {
  { all.bytes(b) } -> std::convertible_to<std::int64_t>;
  { all.offset(b) } -> std::convertible_to<std::int64_t>;
  all.offset(b) = 0;
  { all.meet(b, b) } -> std::convertible_to<bool>;
};

/// Gives offsets from `floor` on to the buffers of `order` and returns the end of the last one. The greatest goes
/// first, each to the lowest gap between those in use at the same time. `order` is room for the work: afterwards it is
/// by offset. (Compared with placing by first use: the same bytes or fewer in all of thirteen plans, up to 29 % fewer.
/// The time it takes grows with the square of the number of buffers.)
template <arena_buffers Buffers>
constexpr std::int64_t place_arena(std::span<std::uint32_t> order, Buffers&& all, std::int64_t floor = 0) {
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::int64_t x = all.bytes(a), y = all.bytes(b);
    return x != y ? x > y : a < b;
  });
  std::int64_t end = floor;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const std::uint32_t b = order[k];
    const std::int64_t bytes = all.bytes(b);
    std::int64_t at = floor;
    for (std::size_t i = 0; i < k; ++i) {
      if (!all.meet(b, order[i])) continue;
      const std::int64_t from = all.offset(order[i]);
      if (at + bytes <= from) break;
      at = std::max(at, from + all.bytes(order[i]));
    }
    all.offset(b) = at;
    end = std::max(end, at + bytes);
    std::size_t i = k;  // those that have an offset stand before the others, by offset
    for (; i > 0 && at < std::int64_t(all.offset(order[i - 1])); --i) order[i] = order[i - 1];
    order[i] = b;
  }
  return end;
}

}  // namespace kiln::lower
