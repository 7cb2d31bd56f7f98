#pragma once
#include <algorithm>
#include <type_traits>

#include "kiln/kernel/index/gather.hpp"
#include "kiln/op/index/scatter_mode.hpp"

namespace kiln::kernels {

/// How many of n places lie in [low, high): none (-1), some (0), all (1).
inline int share_within(const std::int64_t* at, std::int64_t n, std::int64_t low, std::int64_t high) {
  using V = native_vec<std::int64_t>;
  std::int64_t least = at[0], most = at[0], i = 0;
  if (n >= lanes<V>) {
    V below = load<V>(at), above = below;
    for (i = lanes<V>; i + lanes<V> <= n; i += lanes<V>) {
      const V x = load<V>(at + i);
      below = x < below ? x : below, above = x > above ? x : above;
    }
    least = reduce_min(below), most = reduce_max(above);
  }
  for (; i < n; ++i) least = std::min(least, at[i]), most = std::max(most, at[i]);
  return most < low || least >= high ? -1 : least >= low && most < high ? 1 : 0;
}

template <class T, class Combine> void scatter_elements(const slice_updates& u, Combine combine) {
  T* const to = reinterpret_cast<T*>(u.to);
  const T* const from = reinterpret_cast<const T*>(u.updates);
  const auto width = static_cast<std::uint64_t>(u.high - u.low);
  if (u.all) {
    for (std::int64_t i = 0; i < u.count; ++i) to[u.at[i]] = combine(to[u.at[i]], from[i]);
    return;
  }
  std::int32_t own[index_block];
  for (std::int64_t first = 0; first < u.count; first += index_block) {
    const std::int64_t n = std::min(index_block, u.count - first);
    const std::int64_t* const at = u.at + first;
    const T* const values = from + first;
    // places often come nearly in order, so that a block is one task's
    const int share = share_within(at, n, u.low, u.high);
    if (share < 0) continue;
    if (share > 0) {
      for (std::int64_t i = 0; i < n; ++i) to[at[i]] = combine(to[at[i]], values[i]);
      continue;
    }
    std::int64_t kept = 0;  // no branch tells which are this task's: they come in no order
    for (std::int64_t i = 0; i < n; ++i) {
      own[kept] = static_cast<std::int32_t>(i);
      kept += static_cast<std::uint64_t>(at[i] - u.low) < width;
    }
    for (std::int64_t k = 0; k < kept; ++k) {
      const std::int32_t i = own[k];
      to[at[i]] = combine(to[at[i]], values[i]);
    }
  }
}

template <class T, class Combine> void scatter_slices(const slice_updates& u, Combine combine) {
  if (u.slice == 1) return scatter_elements<T>(u, combine);
  const T* from = reinterpret_cast<const T*>(u.updates);
  for (std::int64_t r = 0; r < u.count; ++r, from += u.slice) {
    if (u.at[r] < u.low || u.at[r] >= u.high) continue;
    T* const to = reinterpret_cast<T*>(u.to) + u.at[r] * u.slice;
    using V = native_vec<T>;
    std::int64_t i = 0;
    for (; i + lanes<V> <= u.slice; i += lanes<V>) store(to + i, combine(load<V>(to + i), load<V>(from + i)));
    if (i == u.slice) continue;
    using ops = elementary::native_ops<V>;
    const int rest = static_cast<int>(u.slice - i);
    ops::store_n(to + i, combine(ops::load_n(to + i, rest), ops::load_n(from + i, rest)), rest);
  }
}

/// Replaces slices of `size` bytes an element.
inline void scatter_replace(const slice_updates& u, std::size_t size) {
  if (u.slice == 1) {
    const auto last = [](auto, auto update) { return update; };
    switch (size) {
      case 1: return scatter_elements<std::uint8_t>(u, last);
      case 2: return scatter_elements<std::uint16_t>(u, last);
      case 4: return scatter_elements<std::uint32_t>(u, last);
      default: return scatter_elements<std::uint64_t>(u, last);
    }
  }
  const auto bytes = u.slice * static_cast<std::int64_t>(size);
  for (std::int64_t r = 0; r < u.count; ++r)
    if (u.at[r] >= u.low && u.at[r] < u.high)
      copy_short(u.to + u.at[r] * bytes, u.updates + r * bytes, static_cast<std::size_t>(bytes));
}

/// Combines elements of T with their updates; integers wrap, and a NaN stays a minimum and a maximum.
template <class T> void scatter_combine(const slice_updates& u, op::scatter_mode mode) {
  using op::scatter_mode;
  // sums and products of integers are those of unsigned ones
  using W = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  const auto chosen = [](auto takes, auto update, auto old) { return takes ? update : old; };
  switch (mode) {
    case scatter_mode::add: return scatter_slices<W>(u, [](auto x, auto y) { return static_cast<decltype(x)>(x + y); });
    case scatter_mode::mul: return scatter_slices<W>(u, [](auto x, auto y) { return static_cast<decltype(x)>(x * y); });
    case scatter_mode::min:
      return scatter_slices<T>(u, [=](auto x, auto y) { return chosen((y < x) | (y != y), y, x); });
    case scatter_mode::max:
      return scatter_slices<T>(u, [=](auto x, auto y) { return chosen((y > x) | (y != y), y, x); });
    case scatter_mode::none: return scatter_replace(u, sizeof(T));
  }
}

}  // namespace kiln::kernels
