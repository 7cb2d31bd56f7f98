#pragma once
#include <algorithm>
#include <type_traits>

#include "kiln/core/simd.hpp"

// Elements in their order as unsigned keys, and sorting by them.
namespace kiln::kernels {

/// 16-bit floats as the upper halves of words whose bits are in the order of floats.
struct upper_f16 {
  std::uint16_t bits;
  static constexpr std::uint32_t infinity = 0x7c00'0000;
};
struct upper_bf16 {
  std::uint16_t bits;
  static constexpr std::uint32_t infinity = 0x7f80'0000;
};
template <class T> inline constexpr bool is_half_bits = std::is_same_v<T, upper_f16> || std::is_same_v<T, upper_bf16>;

/// The unsigned type of T's keys.
template <class T> using key_of = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// Keys of V's lanes: greater ones of greater elements, equal ones of equal elements, turned by `turn` (all bits: the
/// least are the greatest); `of_nan` of every NaN.
template <class T, is_vec V, class U = rebind_t<V, key_of<T>>> KILN_FN U keys(V x, U turn, U of_nan) {
  using K = key_of<T>;
  constexpr K sign = K(1) << (8 * sizeof(K) - 1);
  if constexpr (std::is_floating_point_v<element_t<V>>) {
    constexpr K infinity = [] {
      if constexpr (is_half_bits<T>)
        return T::infinity;
      else
        return sizeof(T) == 4 ? K(0x7f80'0000) : K(0x7ff0'0000'0000'0000);
    }();
    using S = rebind_t<V, std::make_signed_t<K>>;
    U bits = (U)x;
    bits = bits == broadcast<U>(sign) ? broadcast<U>(0) : bits;  // zeros are equal
    const U ordered = bits ^ ((U)((S)bits >> int(8 * sizeof(K) - 1)) | sign) ^ turn;
    return (bits & ~broadcast<U>(sign)) > broadcast<U>(infinity) ? of_nan : ordered;
  } else if constexpr (std::is_signed_v<element_t<V>>) {
    return (U)x ^ sign ^ turn;
  } else {
    return (U)x ^ turn;
  }
}

/// The vector that elements of T are widened to for their keys.
template <class T>
using keyed_vec = native_vec<std::conditional_t<
    std::is_floating_point_v<T>, T,
    std::conditional_t<is_half_bits<T>, float,
                       std::conditional_t<std::is_signed_v<T>, std::make_signed_t<key_of<T>>, key_of<T>>>>>;
template <class T> KILN_FN keyed_vec<T> load_keyed(const T* p) {
  using V = keyed_vec<T>;
  if constexpr (is_half_bits<T>) {
    const auto words =
        __builtin_convertvector(load<vec<std::uint16_t, lanes<V>>>(&p->bits), rebind_t<V, std::uint32_t>);
    return (V)(words << 16);
  } else if constexpr (sizeof(T) == sizeof(element_t<V>)) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  } else {
    return __builtin_convertvector(load<vec<T, lanes<V>>>(p), V);
  }
}

/// to[i * to_step] = key of from[i]: the greatest first, a NaN before all; or, `least`, the other way round.
template <class T>
void make_keys(const void* elements, std::int64_t n, bool least, key_of<T>* to, std::int64_t to_step) {
  using V = keyed_vec<T>;
  using K = key_of<T>;
  using U = rebind_t<V, K>;
  const auto* const from = static_cast<const T*>(elements);
  const U turn = broadcast<U>(least ? ~K(0) : K(0)), of_nan = ~turn;
  const auto place = [&](U made, std::int64_t i, std::int64_t some) __attribute__((always_inline)) {
    if (to_step == 1 && some == lanes<V>) return store(to + i, made);
    K lane[lanes<V>];
    store(lane, made);
    for (std::int64_t j = 0; j < some; ++j) to[(i + j) * to_step] = lane[j];
  };
  std::int64_t i = 0;
  for (; i + lanes<V> <= n; i += lanes<V>) place(keys<T>(load_keyed(from + i), turn, of_nan), i, lanes<V>);
  if (i == n) return;
  T rest[lanes<V>] = {};
  std::copy(from + i, from + n, rest);
  place(keys<T>(load_keyed(rest), turn, of_nan), i, n - i);
}

/// An element of a row: its key and its place. One comes before another with a smaller key, or the same and a later
/// place.
template <class Key> struct candidate;
template <> struct candidate<std::uint32_t> {
  std::uint64_t both = 0;
  candidate() = default;
  candidate(std::uint32_t key, std::uint32_t place) : both(std::uint64_t(key) << 32 | (0xffff'ffffu - place)) {}
  std::uint32_t key() const { return static_cast<std::uint32_t>(both >> 32); }
  std::uint32_t place() const { return 0xffff'ffffu - static_cast<std::uint32_t>(both); }
  friend bool operator<(candidate a, candidate b) { return a.both > b.both; }
};
template <> struct candidate<std::uint64_t> {
  std::uint64_t of = 0;
  std::uint32_t at = 0;
  candidate() = default;
  candidate(std::uint64_t key, std::uint32_t place) : of(key), at(place) {}
  std::uint64_t key() const { return of; }
  std::uint32_t place() const { return at; }
  friend bool operator<(candidate a, candidate b) { return a.of != b.of ? a.of > b.of : a.at < b.at; }
};

/// Sorts candidates, whose places ascend, by key, greatest first; `other` is as much memory. Where the result is.
template <class Key> candidate<Key>* sort_by_digits(candidate<Key>* from, candidate<Key>* other, std::int64_t n) {
  constexpr int digits = sizeof(Key);
  std::uint32_t count[digits][256] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    const Key key = from[i].key();
    for (int d = 0; d < digits; ++d) ++count[d][key >> (8 * d) & 255];
  }
  for (int d = 0; d < digits; ++d) {
    if (count[d][from[0].key() >> (8 * d) & 255] == n) continue;  // all have this digit
    std::uint32_t at[256], sum = 0;
    for (int v = 256; v-- > 0;) at[v] = sum, sum += count[d][v];
    for (std::int64_t i = 0; i < n; ++i) other[at[from[i].key() >> (8 * d) & 255]++] = from[i];
    std::swap(from, other);
  }
  return from;
}

}  // namespace kiln::kernels
