#pragma once
#include <immintrin.h>

#include "kiln/core/simd/avx2.hpp"

namespace kiln::elementary {

template <is_vec V>
requires(sizeof(V) == 64) struct native_ops<V> : generic_ops<V> {
  using E = element_t<V>;

  static KILN_FN V fma(V a, V b, V c) {
    if constexpr (is_f32<V>)
      return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
    else
      return (V)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
  }

  static KILN_FN V sqrt(V x) {
    if constexpr (is_f32<V>)
      return (V)_mm512_maskz_sqrt_ps(0xffff, (__m512)x);
    else
      return (V)_mm512_maskz_sqrt_pd(0xff, (__m512d)x);
  }

  static KILN_FN V lesser(V a, V b) {
    if constexpr (same<E, float>)
      return (V)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
    else if constexpr (same<E, double>)
      return (V)_mm512_maskz_min_pd(0xff, (__m512d)a, (__m512d)b);
    else
      return a < b ? a : b;
  }

  static KILN_FN V greater(V a, V b) {
    if constexpr (same<E, float>)
      return (V)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
    else if constexpr (same<E, double>)
      return (V)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b);
    else
      return a > b ? a : b;
  }

  static constexpr bool has_scale = true;

  static KILN_FN V scale(V y, V n) {
    if constexpr (is_f32<V>)
      return (V)_mm512_maskz_scalef_ps(0xffff, (__m512)y, (__m512)n);
    else
      return (V)_mm512_maskz_scalef_pd(0xff, (__m512d)y, (__m512d)n);
  }

  static KILN_FN V nearest(V x) {
    constexpr int how = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    if constexpr (is_f32<V>)
      return (V)_mm512_maskz_roundscale_ps(0xffff, (__m512)x, how);
    else
      return (V)_mm512_maskz_roundscale_pd(0xff, (__m512d)x, how);
  }

  static KILN_FN bool any(V mask) { return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0; }

  static KILN_FN void stream(E* p, V v) { _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v); }

  static KILN_FN V load_n(const E* p, int n) {
    const unsigned long long leading = n < 64 ? (1ull << n) - 1 : ~0ull;
    if constexpr (sizeof(E) == 1)
      return (V)_mm512_maskz_loadu_epi8(leading, p);
    else if constexpr (sizeof(E) == 2)
      return (V)_mm512_maskz_loadu_epi16(__mmask32(leading), p);
    else if constexpr (sizeof(E) == 4)
      return (V)_mm512_maskz_loadu_epi32(__mmask16(leading), p);
    else
      return (V)_mm512_maskz_loadu_epi64(__mmask8(leading), p);
  }

  static KILN_FN void store_n(E* p, V v, int n) {
    const unsigned long long leading = n < 64 ? (1ull << n) - 1 : ~0ull;
    if constexpr (sizeof(E) == 1)
      _mm512_mask_storeu_epi8(p, leading, (__m512i)v);
    else if constexpr (sizeof(E) == 2)
      _mm512_mask_storeu_epi16(p, __mmask32(leading), (__m512i)v);
    else if constexpr (sizeof(E) == 4)
      _mm512_mask_storeu_epi32(p, __mmask16(leading), (__m512i)v);
    else
      _mm512_mask_storeu_epi64(p, __mmask8(leading), (__m512i)v);
  }
};

/// Sixteen IEEE halves and floats.
template <> struct half_ops<vec<float, 16>> {
  static KILN_FN vec<float, 16> widen(vec<std::uint16_t, 16> h) {
    return (vec<float, 16>)_mm512_maskz_cvtph_ps(0xffff, (__m256i)h);
  }
  static KILN_FN vec<std::uint16_t, 16> narrow(vec<float, 16> f) {
    return (vec<std::uint16_t, 16>)_mm512_maskz_cvtps_ph(0xffff, (__m512)f,
                                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};

}  // namespace kiln::elementary
