#pragma once
#include "kiln/backend/hip/kernels/platform/platform.hpp"
#include "kiln/core/math/basic.hpp"

// How generated kernels read and write elements: storage types in memory, one of five types (float, double, i64, u64,
// bool) in between.

#if KILN_NVIDIA
// NVRTC declares the functions over floats alone, and an integer would fit two of them.
inline __device__ double sqrt(long long x) { return sqrt(static_cast<double>(x)); }
inline __device__ double sqrt(unsigned long long x) { return sqrt(static_cast<double>(x)); }
inline __device__ double sqrt(long x) { return sqrt(static_cast<double>(x)); }
inline __device__ double sqrt(unsigned long x) { return sqrt(static_cast<double>(x)); }
#endif

namespace kiln::gpu {

template <class T> inline constexpr bool is_bool = elementary::same<T, bool>;
template <class T> inline constexpr bool is_signed = !(T(-1) > T(0));
template <class T> inline constexpr bool is_real = elementary::same<T, float> || elementary::same<T, double>;

/// For a number of at most eight bits (narrow.hpp): the type it is computed in, and how it is read and written.
template <class T> struct short_number;
template <class T>
concept is_short = requires {
  typename short_number<T>::computed;
};

/// An element as the type that computations on its dtype run in.
template <class T> KILN_FN auto value_of(T x) {
  if constexpr (elementary::same<T, f16> || elementary::same<T, bf16>)
    return widen(x);
  else if constexpr (is_short<T>)
    return static_cast<typename short_number<T>::computed>(short_number<T>::read(x));
  else if constexpr (is_real<T> || is_bool<T>)
    return x;
  else if constexpr (is_signed<T>)
    return static_cast<i64>(x);
  else
    return static_cast<u64>(x);
}

/// A value as an element, converted as ONNX Cast does: floats truncate toward zero and are clamped, NaN gives 0,
/// anything nonzero is true, integers wrap, those of less than eight bits from the 64 that a float gives.
template <class To, class From> KILN_FN To stored(From v) {
  if constexpr (elementary::same<To, From>) {
    return v;
  } else if constexpr (is_bool<To>) {
    return v != From(0);
  } else if constexpr (elementary::same<To, f16> || elementary::same<To, bf16>) {
    return narrow<To>(static_cast<float>(v));
  } else if constexpr (is_short<To>) {
    return short_number<To>::write(stored<typename short_number<To>::computed>(v));
  } else if constexpr (is_real<From> && !is_real<To>) {
    constexpr int width = sizeof(To) * 8;
    constexpr From top = static_cast<From>(u64(1) << (width - 1)) * (is_signed<To> ? 1 : 2);
    if (v != v) return To(0);
    if (v >= top) return static_cast<To>(~u64(0) >> (64 - width + is_signed<To>));
    if constexpr (is_signed<To>) {
      if (v < -top) return static_cast<To>(u64(1) << (width - 1));
    } else {
      if (v <= From(-1)) return static_cast<To>(stored<i64>(v));
    }
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

/// What storing a value as `To` and reading it again gives.
template <class To, class From> KILN_FN auto rounded(From v) { return value_of(stored<To>(v)); }

/// e^x to 2^-17 of it, from 2^120 on to 2^-16, for results of 16 bits.
KILN_FN float short_exp(float x) { return exp2_device(x * 1.44269504f); }
/// 1 / (1 + e^-x), likewise.
KILN_FN float short_sigmoid(float x) { return 1.0f / (1.0f + exp2_device(x * -1.44269504f)); }
/// erf x to 3e-7 absolutely and 6e-6 relatively: 1 - 2^-p of a polynomial p (own minimax fit of -log2 erfc), without a
/// division, and its series near 0.
KILN_FN float short_erf(float x) {
  constexpr u32 sign = 0x80000000u;
  const u32 bits = __builtin_bit_cast(u32, x);
  const float a = bits_as_float(bits & ~sign);
  const float p =
      a * (1.62790859f +
           a * (0.918416381f +
                a * (0.148481622f +
                     a * (-0.0282536931f + a * (0.000774641754f +
                                                a * (0.00148943451f + a * (-0.000445505488f + a * 4.53583380e-5f)))))));
  const float y = a < 0.04f ? a * (1.12837917f - 0.376126389f * (a * a)) : 1.0f - exp2_device(-p);
  return bits_as_float(__builtin_bit_cast(u32, y) | (bits & sign));
}

/// ln(1 + f) to 2^-17 of it, of f and of 1 + f: by the device's logarithm and, near 1, by the series of 2 atanh.
KILN_FN float short_logarithm(float f, float whole) {
  const float s = f / (2.0f + f), z = s * s, near = 2.0f * s * (1.0f + z * (0.333333333f + z * 0.2f));
  const float far = log2_device(whole) * 0.693147181f;
  return f > -0.25f && f < 0.25f ? near : far;
}
/// The natural logarithm, likewise; NaN below 0.
KILN_FN float short_log(float x) { return short_logarithm(x - 1.0f, x); }
/// ln(1 + x), likewise; NaN below -1.
KILN_FN float short_log1p(float x) { return short_logarithm(x, 1.0f + x); }
/// e^x - 1, likewise.
KILN_FN float short_expm1(float x) {
  const float near =
      x * (1.0f + x * (0.5f + x * (0.166666667f + x * (0.0416666667f + x * (0.00833333333f + x * 0.00138888889f)))));
  return x > -0.5f && x < 0.5f ? near : short_exp(x) - 1.0f;
}
/// The hyperbolic cosine, likewise; squares don't overflow.
KILN_FN float short_cosh(float x) {
  const float root = short_exp(0.5f * (x < 0.0f ? -x : x));
  return 0.5f * root * root + 0.5f / root / root;
}
/// The hyperbolic sine, likewise, and with the sign of 0.
KILN_FN float short_sinh(float x) {
  const float a = x < 0.0f ? -x : x, z = x * x, root = short_exp(0.5f * a);
  const float near = a * (1.0f + z * (0.166666667f + z * (0.00833333333f + z * 0.000198412698f)));
  const float y = a < 1.0f ? near : 0.5f * root * root - 0.5f / root / root;
  return x < 0.0f ? -y : a == 0.0f ? x : y;
}
/// The inverse hyperbolic sine, likewise, and with the sign of 0.
KILN_FN float short_asinh(float x) {
  const float a = x < 0.0f ? -x : x, few = a < 16384.0f ? a : 0.0f, z = few * few;
  const float y =
      a < 16384.0f ? short_log1p(few + z / (1.0f + KILN_LIBM(sqrtf)(1.0f + z))) : short_log(a) + 0.693147181f;
  return x < 0.0f ? -y : a == 0.0f ? x : y;
}
/// The inverse hyperbolic cosine, likewise; NaN below 1.
KILN_FN float short_acosh(float x) {
  const float few = x >= 16384.0f ? 1.0f : x, t = few - 1.0f;
  const float y = x >= 16384.0f ? short_log(x) + 0.693147181f : short_log1p(t + KILN_LIBM(sqrtf)(t * (few + 1.0f)));
  return x >= 1.0f ? y : bits_as_float(0x7fc00000u);
}
/// The inverse hyperbolic tangent, likewise; NaN beyond -1 and 1.
KILN_FN float short_atanh(float x) {
  const float a = x < 0.0f ? -x : x, y = 0.5f * short_log1p((a + a) / (1.0f - a));
  return x < 0.0f ? -y : a == 0.0f ? x : y;
}

/// Any value of another lane.
template <class T> KILN_FN T lane_value(T x, int mask) {
  if constexpr (sizeof(T) == 8) {
    u64 bits = __builtin_bit_cast(u64, x);
    const float low = shuffle_xor(bits_as_float(static_cast<u32>(bits)), mask);
    const float high = shuffle_xor(bits_as_float(static_cast<u32>(bits >> 32)), mask);
    bits = u64(__builtin_bit_cast(u32, low)) | u64(__builtin_bit_cast(u32, high)) << 32;
    return __builtin_bit_cast(T, bits);
  } else if constexpr (elementary::same<T, float>) {
    return shuffle_xor(x, mask);
  } else {
    const float moved = shuffle_xor(bits_as_float(static_cast<u32>(x)), mask);
    return static_cast<T>(__builtin_bit_cast(u32, moved));
  }
}

/// The sums of `Lanes` neighboring threads together, in every one of them. `Lanes` is a power of two; beyond 32,
/// `shared` has room for a value of every 32 threads of the block, and all its threads call.
template <int Lanes, class T, class Combine> KILN_FN T join_lanes(T sum, T* shared, Combine combine) {
  constexpr int in_warp = Lanes < 32 ? Lanes : 32;
  KILN_UNROLL
  for (int m = in_warp / 2; m > 0; m /= 2) sum = combine(sum, lane_value(sum, m));
  if constexpr (Lanes > 32) {
    constexpr int parts = Lanes / 32;
    const int part = thread_index() / 32;
    sync_block();
    if (thread_index() % 32 == 0) shared[part] = sum;
    sync_block();
    const int first = part / parts * parts;
    sum = shared[first];
    KILN_UNROLL
    for (int i = 1; i < parts; ++i) sum = combine(sum, shared[first + i]);
  }
  return sum;
}

/// The same for threads of a stride of `Width`: thread i works row i % Width.
template <int Lanes, int Width, class T, class Combine> KILN_FN T join_columns(T sum, T* shared, Combine combine) {
  if constexpr (Lanes > 1) {
    sync_block();
    shared[thread_index()] = sum;
    sync_block();
    const int row = thread_index() % Width;
    sum = shared[row];
    KILN_UNROLL
    for (int i = 1; i < Lanes; ++i) sum = combine(sum, shared[i * Width + row]);
  }
  return sum;
}

}  // namespace kiln::gpu

namespace kiln::gpu {

/// Whether an instruction that takes denormals of f32 for 0, in memory and as sums, adds this to within a rounding:
/// what it drops is less than 2^-126, half a unit in the last place of 2^-102.
template <class T> KILN_FN constexpr bool outweighs_denormals(T x) {
  if constexpr (elementary::same<T, float>)
    return !(x > -0x1p-102f && x < 0x1p-102f);
  else
    return true;
}

#if KILN_NVIDIA
/// Writes `to` where `*at` is `expected`; what was there before.
KILN_FN u32 exchange_if(u32* at, u32 expected, u32 to) { return atomicCAS(at, expected, to); }
KILN_FN u64 exchange_if(u64* at, u64 expected, u64 to) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(expected),
                   static_cast<unsigned long long>(to));
}
/// The greater of `*at` and `to` stays there.
KILN_FN void raise_number(int* at, int to) { atomicMax(at, to); }
/// Adds to a number of memory in one instruction, for the types that have one; that of f32 takes denormals for 0
/// (PTX ISA, atom.add).
template <class T> inline constexpr bool adds_at_once = sizeof(T) >= 4 && !is_short<T>;
template <class T> KILN_FN void add_at_once(T* at, T by) {
  if constexpr (is_real<T>)
    atomicAdd(at, by);
  else if constexpr (sizeof(T) == 4)
    atomicAdd(reinterpret_cast<unsigned*>(at), static_cast<unsigned>(by));
  else  // integers wrap alike, with a sign and without
    atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(by));
}
#else
template <class T> inline constexpr bool adds_at_once = false;
template <class T> void add_at_once(T*, T);
template <class W> KILN_FN W exchange_if(W* at, W expected, W to) {
  __atomic_compare_exchange_n(at, &expected, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
KILN_FN void raise_number(int* at, int to) {
  for (int seen = *at; seen < to;) {
    const int before = exchange_if(at, seen, to);
    if (before == seen) return;
    seen = before;
  }
}
#endif

}  // namespace kiln::gpu
