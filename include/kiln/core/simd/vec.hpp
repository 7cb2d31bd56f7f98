#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kiln/core/math/values.hpp"

namespace kiln {

/// N lanes of T as a compiler vector: T's arithmetic and comparison operators work lane by lane. Never
/// constant-evaluated.
template <class T, int N> using vec = typename elementary::vector_of<T, int(sizeof(T)) * N>::type;

/// Lanes of T in the widest vector register of this translation unit's instruction set.
template <class T> inline constexpr int native_lanes = native_bytes / int(sizeof(T));

/// The vector of T that fills the widest register.
template <class T> using native_vec = vec<T, native_lanes<T>>;

/// lanes<V> values from `p`, any alignment.
template <is_vec V> KILN_FN V load(const element_t<V>* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}

/// Stores lanes<V> values to `p`, any alignment.
template <is_vec V> KILN_FN void store(element_t<V>* p, V v) { __builtin_memcpy(p, &v, sizeof(V)); }

/// `s` in every lane.
template <is_vec V> KILN_FN V broadcast(element_t<V> s) { return splat<V>(s); }

namespace elementary {

template <int Begin, is_vec V, std::size_t... I> KILN_FN auto pick(V v, std::index_sequence<I...>) {
  return __builtin_shufflevector(v, v, int(I + Begin)...);
}

template <is_vec H, std::size_t... I> KILN_FN auto merge(H a, H b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, int(I)...);
}

}  // namespace elementary

/// The first half of the lanes.
template <is_vec V> KILN_FN auto lower_half(V v) {
  return elementary::pick<0>(v, std::make_index_sequence<lanes<V> / 2>());
}

/// The second half of the lanes.
template <is_vec V> KILN_FN auto upper_half(V v) {
  return elementary::pick<lanes<V> / 2>(v, std::make_index_sequence<lanes<V> / 2>());
}

/// The lanes of `a`, then those of `b`.
template <is_vec H> KILN_FN auto join(H a, H b) {
  return elementary::merge(a, b, std::make_index_sequence<2 * lanes<H>>());
}

}  // namespace kiln
