#pragma once
#include "kiln/core/math/values.hpp"

namespace kiln {

namespace elementary {

template <class A, class B> struct wider { using type = decltype(true ? A{} : B{}); };
template <class A> struct wider<A, A> { using type = A; };
template <class A, class B>
requires((is_vec<A> || __is_class(A)) && !is_vec<B> && !__is_class(B)) struct wider<A, B> {
  using type = A;
};
template <class A, class B>
requires((is_vec<B> || __is_class(B)) && !is_vec<A> && !__is_class(A)) struct wider<A, B> {
  using type = B;
};

}  // namespace elementary

/// `condition ? a : b` without a branch, lane by lane; a scalar `a` or `b` beside a vector is broadcast.
template <class C, class A, class B> KILN_FN constexpr auto select(C condition, A a, B b) {
  using T = typename elementary::wider<A, B>::type;
  if constexpr (recorder<C>) {
    return C::call("select", condition, splat<C>(a), splat<C>(b));
  } else if constexpr (is_vec<C>) {
    static_assert(is_vec<T>, "select on a vector needs a vector value: write splat<T>(constant)");
    if constexpr (sizeof(element_t<C>) == sizeof(element_t<T>)) {
      return (mask_t<T>)condition ? splat<T>(a) : splat<T>(b);
    } else {
      return convert<mask_t<T>>(condition) ? splat<T>(a) : splat<T>(b);
    }
  } else {
    return condition ? splat<T>(a) : splat<T>(b);
  }
}

/// Logical and of bools, or of comparison results lane by lane.
template <class M> KILN_FN constexpr M logical_and(M a, M b) {
  if constexpr (recorder<M>)
    return M::call("logical_and", a, b);
  else if constexpr (is_vec<M>)
    return a & b;
  else
    return M(bool(a) & bool(b));
}

/// Logical or of bools, or of comparison results lane by lane.
template <class M> KILN_FN constexpr M logical_or(M a, M b) {
  if constexpr (recorder<M>)
    return M::call("logical_or", a, b);
  else if constexpr (is_vec<M>)
    return a | b;
  else
    return M(bool(a) | bool(b));
}

/// Logical exclusive or of bools, or of comparison results lane by lane.
template <class M> KILN_FN constexpr M logical_xor(M a, M b) {
  if constexpr (recorder<M>)
    return M::call("logical_xor", a, b);
  else if constexpr (is_vec<M>)
    return a ^ b;
  else
    return M(bool(a) ^ bool(b));
}

/// Logical not of a bool, or of a comparison result lane by lane.
template <class M> KILN_FN constexpr M logical_not(M a) {
  if constexpr (recorder<M>)
    return M::call("logical_not", a);
  else if constexpr (is_vec<M>)
    return ~a;
  else
    return M(!bool(a));
}

}  // namespace kiln
