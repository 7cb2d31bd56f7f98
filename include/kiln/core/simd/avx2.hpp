#pragma once
#include "kiln/core/simd/generic.hpp"

// The compilers' builtins, by the names that g++ and clang share: <immintrin.h> would cost every translation unit half
// a second and 100 MB.

namespace kiln::elementary {

KILN_FN void fence_streams() { __builtin_ia32_sfence(); }

/// Stores past the caches.
template <class V> KILN_FN void stream_vector(void* p, V v) {
  asm volatile("vmovntdq %1, %0" : "=m"(*static_cast<V*>(p)) : "x"(v));
}

KILN_FN void leave_wide_registers() { __builtin_ia32_vzeroupper(); }

KILN_FN vec<float, 4> native_fma(vec<float, 4> a, vec<float, 4> b, vec<float, 4> c) {
  return __builtin_ia32_vfmaddps(a, b, c);
}
KILN_FN vec<float, 8> native_fma(vec<float, 8> a, vec<float, 8> b, vec<float, 8> c) {
  return __builtin_ia32_vfmaddps256(a, b, c);
}
KILN_FN vec<double, 2> native_fma(vec<double, 2> a, vec<double, 2> b, vec<double, 2> c) {
  return __builtin_ia32_vfmaddpd(a, b, c);
}
KILN_FN vec<double, 4> native_fma(vec<double, 4> a, vec<double, 4> b, vec<double, 4> c) {
  return __builtin_ia32_vfmaddpd256(a, b, c);
}
KILN_FN vec<float, 4> native_sqrt(vec<float, 4> x) { return __builtin_ia32_sqrtps(x); }
KILN_FN vec<float, 8> native_sqrt(vec<float, 8> x) { return __builtin_ia32_sqrtps256(x); }
KILN_FN vec<double, 2> native_sqrt(vec<double, 2> x) { return __builtin_ia32_sqrtpd(x); }
KILN_FN vec<double, 4> native_sqrt(vec<double, 4> x) { return __builtin_ia32_sqrtpd256(x); }
KILN_FN vec<float, 4> native_min(vec<float, 4> a, vec<float, 4> b) { return __builtin_ia32_minps(a, b); }
KILN_FN vec<float, 8> native_min(vec<float, 8> a, vec<float, 8> b) { return __builtin_ia32_minps256(a, b); }
KILN_FN vec<double, 2> native_min(vec<double, 2> a, vec<double, 2> b) { return __builtin_ia32_minpd(a, b); }
KILN_FN vec<double, 4> native_min(vec<double, 4> a, vec<double, 4> b) { return __builtin_ia32_minpd256(a, b); }
KILN_FN vec<float, 4> native_max(vec<float, 4> a, vec<float, 4> b) { return __builtin_ia32_maxps(a, b); }
KILN_FN vec<float, 8> native_max(vec<float, 8> a, vec<float, 8> b) { return __builtin_ia32_maxps256(a, b); }
KILN_FN vec<double, 2> native_max(vec<double, 2> a, vec<double, 2> b) { return __builtin_ia32_maxpd(a, b); }
KILN_FN vec<double, 4> native_max(vec<double, 4> a, vec<double, 4> b) { return __builtin_ia32_maxpd256(a, b); }

/// What vectors of 16 and of 32 bytes share.
template <class V> struct avx2_ops : generic_ops<V> {
  using E = element_t<V>;
  static constexpr bool has_floats = same<E, float> || same<E, double>;

  static KILN_FN V fma(V a, V b, V c) { return native_fma(a, b, c); }
  static KILN_FN V sqrt(V x) { return native_sqrt(x); }
  static KILN_FN V lesser(V a, V b) {
    if constexpr (has_floats)
      return native_min(a, b);
    else
      return a < b ? a : b;
  }
  static KILN_FN V greater(V a, V b) {
    if constexpr (has_floats)
      return native_max(a, b);
    else
      return a > b ? a : b;
  }
  static KILN_FN void stream(E* p, V v) { stream_vector(p, v); }
};

template <is_vec V>
requires(sizeof(V) == 16) struct native_ops<V> : avx2_ops<V> {
  static KILN_FN bool any(V mask) {
    return !__builtin_ia32_ptestz128((vec<long long, 2>)mask, (vec<long long, 2>)mask);
  }
};

template <is_vec V>
requires(sizeof(V) == 32) struct native_ops<V> : avx2_ops<V> {
  using E = element_t<V>;

  static KILN_FN bool any(V mask) {
    return !__builtin_ia32_ptestz256((vec<long long, 4>)mask, (vec<long long, 4>)mask);
  }

  static KILN_FN V load_n(const E* p, int n) {
    if constexpr (sizeof(E) == 4)
      return (V)__builtin_ia32_maskloadd256(reinterpret_cast<const vec<int, 8>*>(p), (vec<int, 8>)leading(n));
    else if constexpr (sizeof(E) == 8)
      return (V)__builtin_ia32_maskloadq256(reinterpret_cast<const vec<long long, 4>*>(p),
                                            (vec<long long, 4>)leading(n));
    else
      return generic_ops<V>::load_n(p, n);
  }

  static KILN_FN void store_n(E* p, V v, int n) {
    if constexpr (sizeof(E) == 4)
      __builtin_ia32_maskstored256(reinterpret_cast<vec<int, 8>*>(p), (vec<int, 8>)leading(n), (vec<int, 8>)v);
    else if constexpr (sizeof(E) == 8)
      __builtin_ia32_maskstoreq256(reinterpret_cast<vec<long long, 4>*>(p), (vec<long long, 4>)leading(n),
                                   (vec<long long, 4>)v);
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
template <> struct half_ops<vec<float, 8>> {
  static KILN_FN vec<float, 8> widen(vec<std::uint16_t, 8> h) { return __builtin_ia32_vcvtph2ps256((vec<short, 8>)h); }
  static KILN_FN vec<std::uint16_t, 8> narrow(vec<float, 8> f) {
    return (vec<std::uint16_t, 8>)__builtin_ia32_vcvtps2ph256(f, 8);
  }
};

}  // namespace kiln::elementary
