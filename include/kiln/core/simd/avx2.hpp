#pragma once
#include <immintrin.h>

#include "kiln/core/simd/generic.hpp"

namespace kiln::elementary {

KILN_FN void fence_streams() { _mm_sfence(); }

KILN_FN void leave_wide_registers() { _mm256_zeroupper(); }

template <is_vec V>
requires(sizeof(V) == 16) struct native_ops<V> : generic_ops<V> {
  using E = element_t<V>;

  static KILN_FN V fma(V a, V b, V c) {
    if constexpr (is_f32<V>)
      return (V)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
    else
      return (V)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
  }

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

  static KILN_FN bool any(V mask) { return !_mm_testz_si128((__m128i)mask, (__m128i)mask); }

  static KILN_FN void stream(E* p, V v) { _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v); }
};

template <is_vec V>
requires(sizeof(V) == 32) struct native_ops<V> : generic_ops<V> {
  using E = element_t<V>;

  static KILN_FN V fma(V a, V b, V c) {
    if constexpr (is_f32<V>)
      return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
    else
      return (V)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
  }

  static KILN_FN V sqrt(V x) {
    if constexpr (is_f32<V>)
      return (V)_mm256_sqrt_ps((__m256)x);
    else
      return (V)_mm256_sqrt_pd((__m256d)x);
  }

  static KILN_FN V lesser(V a, V b) {
    if constexpr (same<E, float>)
      return (V)_mm256_min_ps((__m256)a, (__m256)b);
    else if constexpr (same<E, double>)
      return (V)_mm256_min_pd((__m256d)a, (__m256d)b);
    else
      return a < b ? a : b;
  }

  static KILN_FN V greater(V a, V b) {
    if constexpr (same<E, float>)
      return (V)_mm256_max_ps((__m256)a, (__m256)b);
    else if constexpr (same<E, double>)
      return (V)_mm256_max_pd((__m256d)a, (__m256d)b);
    else
      return a > b ? a : b;
  }

  static KILN_FN bool any(V mask) { return !_mm256_testz_si256((__m256i)mask, (__m256i)mask); }

  static KILN_FN void stream(E* p, V v) { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v); }

  static KILN_FN V load_n(const E* p, int n) {
    if constexpr (sizeof(E) == 4)
      return (V)_mm256_maskload_epi32(reinterpret_cast<const int*>(p), (__m256i)leading(n));
    else if constexpr (sizeof(E) == 8)
      return (V)_mm256_maskload_epi64(reinterpret_cast<const long long*>(p), (__m256i)leading(n));
    else
      return generic_ops<V>::load_n(p, n);
  }

  static KILN_FN void store_n(E* p, V v, int n) {
    if constexpr (sizeof(E) == 4)
      _mm256_maskstore_epi32(reinterpret_cast<int*>(p), (__m256i)leading(n), (__m256i)v);
    else if constexpr (sizeof(E) == 8)
      _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), (__m256i)leading(n), (__m256i)v);
    else
      generic_ops<V>::store_n(p, v, n);
  }

 private:
  static KILN_FN auto leading(int n) {
    if constexpr (sizeof(E) == 4)
      return vec<std::int32_t, 8>{0, 1, 2, 3, 4, 5, 6, 7} < splat<vec<std::int32_t, 8>>(n);
    else
      return vec<std::int64_t, 4>{0, 1, 2, 3} < splat<vec<std::int64_t, 4>>(n);
  }
};

/// Eight IEEE halves and floats (F16C).
template <>
struct half_ops<vec<float, 8>> {
  static KILN_FN vec<float, 8> widen(vec<std::uint16_t, 8> h) { return (vec<float, 8>)_mm256_cvtph_ps((__m128i)h); }
  static KILN_FN vec<std::uint16_t, 8> narrow(vec<float, 8> f) {
    return (vec<std::uint16_t, 8>)_mm256_cvtps_ph((__m256)f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};

}  // namespace kiln::elementary
