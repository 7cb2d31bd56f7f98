#pragma once
#include <emmintrin.h>

#include "kiln/core/simd/generic.hpp"

namespace kiln::elementary {

KILN_FN void fence_streams() { _mm_sfence(); }

KILN_FN void leave_wide_registers() {}

template <is_vec V>
requires(sizeof(V) == 16) struct native_ops<V> : generic_ops<V> {
  using E = element_t<V>;

  static KILN_FN V sqrt(V x) {
    if constexpr (is_f32<V>)
      return (V)_mm_sqrt_ps((__m128)x);
    else
      return (V)_mm_sqrt_pd((__m128d)x);
  }

  static KILN_FN V lesser(V a, V b) {
    if constexpr (same<E, float>)
      return (V)_mm_min_ps((__m128)a, (__m128)b);
    else if constexpr (same<E, double>)
      return (V)_mm_min_pd((__m128d)a, (__m128d)b);
    else
      return a < b ? a : b;
  }

  static KILN_FN V greater(V a, V b) {
    if constexpr (same<E, float>)
      return (V)_mm_max_ps((__m128)a, (__m128)b);
    else if constexpr (same<E, double>)
      return (V)_mm_max_pd((__m128d)a, (__m128d)b);
    else
      return a > b ? a : b;
  }

  static KILN_FN bool any(V mask) { return _mm_movemask_epi8((__m128i)mask) != 0; }

  static KILN_FN void stream(element_t<V>* p, V v) { _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v); }
};

}  // namespace kiln::elementary
