#pragma once
#include "kiln/core/simd.hpp"
#include "kiln/kernel/index/problem.hpp"

namespace kiln::kernels {

/// to[i] = p * step for i < n, where p is the place that index first + i names in an extent, negative indices counting
/// from the end. True where all lie within it.
template <class Index>
bool places(const Index* from, std::int64_t n, std::int64_t extent, std::int64_t step, std::int64_t* to) {
  using V = native_vec<std::int64_t>;
  using U = native_vec<std::uint64_t>;
  const V all = broadcast<V>(extent), steps = broadcast<V>(step);
  V outside = broadcast<V>(0);
  std::int64_t i = 0;
  constexpr std::int64_t ahead = 2048 / sizeof(Index);
  for (; i + lanes<V> <= n; i += lanes<V>) {
    __builtin_prefetch(from + i + ahead);
    V k;
    if constexpr (sizeof(Index) == 8)
      k = load<V>(from + i);
    else
      k = __builtin_convertvector(load<vec<Index, lanes<V>>>(from + i), V);
    k += (k >> 63) & all;
    outside |= (V)((U)k >= (U)all);
    store(to + i, step == 1 ? k : k * steps);
  }
  bool bad = elementary::native_ops<V>::any(outside);
  for (; i < n; ++i) {
    const std::int64_t k = from[i] < 0 ? from[i] + extent : from[i];
    bad |= static_cast<std::uint64_t>(k) >= static_cast<std::uint64_t>(extent);
    to[i] = k * step;
  }
  return !bad;
}
inline bool places(const index_list& list, std::int64_t first, std::int64_t n, std::int64_t extent, std::int64_t step,
                   std::int64_t* to) {
  return list.wide ? places(static_cast<const std::int64_t*>(list.at) + first, n, extent, step, to)
                   : places(static_cast<const std::int32_t*>(list.at) + first, n, extent, step, to);
}

/// Positions of the elements of indices [first, first + n), n <= index_block; false where one lies outside the extent.
/// `to` has room for a vector more.
inline bool element_positions(const element_indices& e, std::int64_t first, std::int64_t n, std::int64_t* to) {
  using V = native_vec<std::int64_t>;
  if (e.inner == 1 && e.region == 0) return places(e.list, first, n, e.extent, e.step, to);
  std::int64_t at[index_block + lanes<V>];
  if (!places(e.list, first, n, e.extent, e.step, at)) return false;
  V count;
  if (e.length == 1) {  // each index has a region of its own
    for (int lane = 0; lane < lanes<V>; ++lane) count[lane] = (first + lane) * e.region;
    for (std::int64_t i = 0; i < n; i += lanes<V>, count += lanes<V> * e.region) store(to + i, load<V>(at + i) + count);
    return true;
  }
  // Runs of indices that lie side by side, or in one stretch: what is written past the end of one, the next one mends.
  for (int lane = 0; lane < lanes<V>; ++lane) count[lane] = e.inner == 1 ? 0 : lane;
  const std::int64_t length = e.inner == 1 ? e.length : e.inner, step = e.inner == 1 ? 0 : lanes<V>;
  std::int64_t column = first % length, stretch = first / e.length, left = e.length - first % e.length;
  for (std::int64_t i = 0; i < n; column = 0) {
    const std::int64_t some = length - column < n - i ? length - column : n - i;
    V offset = count + (stretch * e.region + (step ? column : 0));
    for (std::int64_t j = 0; j < some; j += lanes<V>, offset += step) store(to + i + j, load<V>(at + i + j) + offset);
    i += some;
    left -= some;
    if (left == 0) ++stretch, left = e.length;
  }
  return true;
}

}  // namespace kiln::kernels
