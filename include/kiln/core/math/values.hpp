#pragma once
#include "kiln/core/math/types.hpp"

namespace kiln {

/// `s` in every lane of `T`: the one way to bring a constant or an attribute into an op body. A scalar is cast, a
/// recorder notes a constant.
template <class T, class S> KILN_FN constexpr T splat(S s) {
  if constexpr (elementary::same<T, S>) {
    return s;
  } else if constexpr (is_vec<T>) {
    return static_cast<element_t<T>>(s) - T{};  // minus, since -0.0 + 0.0 is +0.0
  } else {
    return static_cast<T>(s);
  }
}

/// The bit pattern of a float as an unsigned integer of the same width, lane by lane.
template <class T> KILN_FN constexpr auto bits(T x) {
  if constexpr (recorder<T>) {
    return T::call("bits", x);
  } else if constexpr (is_vec<T>) {
    return (bits_t<T>)x;
  } else {
    return __builtin_bit_cast(bits_t<T>, x);
  }
}

/// The float (vector) `T` whose bit pattern is `b`: the inverse of `bits`.
template <class T, class B> KILN_FN constexpr T from_bits(B b) {
  if constexpr (recorder<T>) {
    return T::call("from_bits", b);
  } else if constexpr (is_vec<T>) {
    return (T)b;
  } else {
    return __builtin_bit_cast(T, b);
  }
}

/// Each lane of `v` converted to the element type of `To` as a C++ cast does (float to integer truncates).
template <class To, class From> KILN_FN constexpr To convert(From v) {
  if constexpr (elementary::same<To, From>) {
    return v;
  } else if constexpr (is_vec<From>) {
    return KILN_CONVERT_VECTOR(v, To);
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace kiln
