#pragma once
#include "kiln/core/math/format.hpp"
#include "kiln/core/math/select.hpp"
#include "kiln/core/simd/vec.hpp"

namespace kiln::elementary {

/// Operations on a vector wider than a register (by halves) or without an instruction (by lanes).
template <class V> struct generic_ops {
  static constexpr bool splits = sizeof(V) > 16;
  static constexpr int half_lanes = lanes<V> / 2;
  using E = element_t<V>;
  using half = vec<E, half_lanes>;

  static KILN_FN V fma(V a, V b, V c) {
    if constexpr (splits) {
      using ops = native_ops<half>;
      return join(ops::fma(lower_half(a), lower_half(b), lower_half(c)),
                  ops::fma(upper_half(a), upper_half(b), upper_half(c)));
    } else {
      V v{};
      for (int i = 0; i < lanes<V>; ++i) {
        if constexpr (is_f32<V>)
          v[i] = __builtin_fmaf(a[i], b[i], c[i]);
        else
          v[i] = __builtin_fma(a[i], b[i], c[i]);
      }
      return v;
    }
  }

  static KILN_FN V sqrt(V x) {
    if constexpr (splits) {
      return join(native_ops<half>::sqrt(lower_half(x)), native_ops<half>::sqrt(upper_half(x)));
    } else {
      V v{};
      for (int i = 0; i < lanes<V>; ++i) {
        if constexpr (is_f32<V>)
          v[i] = __builtin_sqrtf(x[i]);
        else
          v[i] = __builtin_sqrt(x[i]);
      }
      return v;
    }
  }

  static KILN_FN V lesser(V a, V b) { return a < b ? a : b; }
  static KILN_FN V greater(V a, V b) { return a > b ? a : b; }

  /// Whether `scale` exists: y * 2^n rounded once, as one instruction.
  static constexpr bool has_scale = false;

  static KILN_FN bool any(V mask) {
    if constexpr (splits) {
      return native_ops<half>::any(lower_half(mask) | upper_half(mask));
    } else if constexpr (sizeof(V) == 16) {
      const auto words = (vec<std::uint64_t, 2>)mask;
      return (words[0] | words[1]) != 0;
    } else {
      bool found = false;
      for (int i = 0; i < lanes<V>; ++i) found |= mask[i] != 0;
      return found;
    }
  }

  static KILN_FN void stream(E* p, V v) {
    if constexpr (splits) {
      native_ops<half>::stream(p, lower_half(v));
      native_ops<half>::stream(p + half_lanes, upper_half(v));
    } else {
      store(p, v);
    }
  }

  static KILN_FN V load_n(const E* p, int n) {
    if constexpr (splits) {
      const half low = n < half_lanes ? native_ops<half>::load_n(p, n) : load<half>(p);
      return join(low, n > half_lanes ? native_ops<half>::load_n(p + half_lanes, n - half_lanes) : half{});
    } else {
      V v{};
      for (int i = 0; i < lanes<V>; ++i)
        if (i < n) v[i] = p[i];
      return v;
    }
  }

  static KILN_FN void store_n(E* p, V v, int n) {
    if constexpr (splits) {
      native_ops<half>::store_n(p, lower_half(v), n < half_lanes ? n : half_lanes);
      if (n > half_lanes) native_ops<half>::store_n(p + half_lanes, upper_half(v), n - half_lanes);
    } else {
      for (int i = 0; i < lanes<V>; ++i)
        if (i < n) p[i] = v[i];
    }
  }
};

/// What the instruction set of this translation unit offers; the specializations hide what they do better.
template <class V> struct native_ops : generic_ops<V> {};

/// Float vectors from IEEE half bits and back: exact, and rounded to nearest even (NaN becomes quiet).
template <class F> struct half_ops {
  using U = bits_t<F>;
  using H = rebind_t<F, std::uint16_t>;

  static KILN_FN F widen(H h) {
    if constexpr (lanes < F >> 8) {
      using ops = half_ops<vec<float, lanes<F> / 2>>;
      return join(ops::widen(lower_half(h)), ops::widen(upper_half(h)));
    } else {
      const U x = convert<U>(h), sign = (x & 0x8000u) << 16, magnitude = x & 0x7fffu;
      const F normal = from_bits<F>((magnitude << 13) + (112u << 23));
      const F tiny = from_bits<F>((magnitude << 13) + (113u << 23)) - splat<F>(0x1p-14f);  // an exact subtraction
      const U quiet = select(magnitude > splat<U>(0x7c00), splat<U>(0x400000), splat<U>(0));
      const F special = from_bits<F>((magnitude << 13) | quiet | 0x7f800000u);
      const F finite = select(magnitude < splat<U>(0x400), tiny, normal);
      return from_bits<F>(bits(select(magnitude >= splat<U>(0x7c00), special, finite)) | sign);
    }
  }

  static KILN_FN H narrow(F f) {
    if constexpr (lanes < F >> 8) {
      using ops = half_ops<vec<float, lanes<F> / 2>>;
      return join(ops::narrow(lower_half(f)), ops::narrow(upper_half(f)));
    } else {
      const U x = bits(f), sign = (x >> 16) & 0x8000u, magnitude = x & 0x7fffffffu;
      const U normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
      const U tiny = bits(from_bits<F>(magnitude) + splat<F>(0.5f)) - 0x3f000000u;  // the sum's last bit weighs 2^-24
      const U finite = select(magnitude < splat<U>(113u << 23), tiny, normal);
      const U bounded = select(magnitude >= splat<U>(0x477ff000u), splat<U>(0x7c00), finite);
      const U nan = ((magnitude >> 13) & 0x3ffu) | 0x7e00u;
      return convert<H>(select(magnitude > splat<U>(0x7f800000u), nan, bounded) | sign);
    }
  }
};

}  // namespace kiln::elementary
