#pragma once
#include "kiln/core/math/select.hpp"
#include "kiln/core/simd/vec.hpp"

namespace kiln {

namespace elementary {

template <class Op, is_vec V> KILN_FN element_t<V> reduce(V v, Op op) {
  if constexpr (lanes<V> == 2)
    return op(element_t<V>(v[0]), element_t<V>(v[1]));
  else
    return reduce(op(lower_half(v), upper_half(v)), op);
}

/// Integers as unsigned ones, whose overflow is defined.
template <is_vec V> KILN_FN auto wrapping(V v) {
  if constexpr (integral<V>)
    return (bits_t<V>)v;
  else
    return v;
}

}  // namespace elementary

/// Sum of the lanes, added pairwise: lane i to lane i + lanes/2, and so on. Integers wrap.
template <is_vec V> KILN_FN element_t<V> reduce_add(V v) {
  return element_t<V>(elementary::reduce(elementary::wrapping(v), [](auto a, auto b) { return decltype(a)(a + b); }));
}

/// Product of the lanes, multiplied pairwise like `reduce_add`.
template <is_vec V> KILN_FN element_t<V> reduce_mul(V v) {
  return element_t<V>(elementary::reduce(elementary::wrapping(v), [](auto a, auto b) { return decltype(a)(a * b); }));
}

/// Greatest lane; NaN if any lane is.
template <is_vec V> KILN_FN element_t<V> reduce_max(V v) {
  return elementary::reduce(v, [](auto a, auto b) { return decltype(a)(select((b < a) | (a != a), a, b)); });
}

/// Least lane; NaN if any lane is.
template <is_vec V> KILN_FN element_t<V> reduce_min(V v) {
  return elementary::reduce(v, [](auto a, auto b) { return decltype(a)(select((a < b) | (a != a), a, b)); });
}

}  // namespace kiln
