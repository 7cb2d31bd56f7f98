#pragma once
#include <string_view>

/// The texts that every exported header begins with. They stand in the namespace of the program.
namespace kiln::aot {

inline constexpr std::string_view cpp_vectors = R"text(
template <class T, int N>
struct vector_of {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using vec = typename vector_of<T, N>::type;

template <class V, class T>
inline __attribute__((always_inline)) V load(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}
template <class V, class T>
inline __attribute__((always_inline)) V load_n(const T* p, int n) {
  V v{};
  __builtin_memcpy(&v, p, static_cast<std::size_t>(n) * sizeof(T));
  return v;
}
template <class V, class T>
inline __attribute__((always_inline)) void store(T* p, V v) {
  __builtin_memcpy(p, &v, sizeof(V));
}
template <class V, class T>
inline __attribute__((always_inline)) void store_n(T* p, V v, int n) {
  __builtin_memcpy(p, &v, static_cast<std::size_t>(n) * sizeof(T));
}
template <class V, class T>
inline __attribute__((always_inline)) V splat(T x) {
  return x - V{};
}
template <class V>
inline __attribute__((always_inline)) V broadcast(float x) {
  return x - V{};
}
/// The first N elements of a vector.
template <int N>
inline __attribute__((always_inline)) vec<float, lanes> load_some(const float* p) {
  if constexpr (N == lanes)
    return load<vec<float, lanes>>(p);
  else
    return load_n<vec<float, lanes>>(p, N);
}
template <int N>
inline __attribute__((always_inline)) void store_some(float* p, vec<float, lanes> v) {
  __builtin_memcpy(p, &v, N * sizeof(float));
}
template <class V>
inline __attribute__((always_inline)) V multiply_add(V a, V b, V c) {
  return a * b + c;
}
)text";

inline constexpr std::string_view cpp_products = R"text(
/// Writes the product of these extents to rows of `c` that begin `c_row` elements apart.
template <product_extents P, class T>
inline void multiply(const T* a, const T* b, T* c, std::int64_t c_row) {
  if constexpr (std::is_integral_v<T>) {
    for (std::int64_t row = 0; row < P.m; ++row)
      for (std::int64_t i = 0; i < P.n; ++i) {
        std::uint64_t sum = 0;
        for (std::int64_t k = 0; k < P.k; ++k)
          sum += static_cast<std::uint64_t>(a[row * P.a_row + k * P.a_step]) * static_cast<std::uint64_t>(b[k * P.b_row + i]);
        c[row * c_row + i] = static_cast<T>(sum);
      }
  } else {
    constexpr int n = lanes * 4 / static_cast<int>(sizeof(T));
    static_product<P, n, registers>(a, b, [&](std::int64_t row, std::int64_t column, auto count, vec<T, n> v) {
      __builtin_memcpy(c + row * c_row + column, &v, count * sizeof(T));
    });
  }
}
)text";

inline constexpr std::string_view cpp_math = R"text(
// ---- scalar functions of the model's ops
namespace math {
namespace scalar {
using i64 = std::int64_t;
using u64 = std::uint64_t;
}  // namespace scalar

inline constexpr float infinity = std::numeric_limits<float>::infinity();

/// The value that is left when x is stored as To: floats are clamped to an integer's range, integers wrap.
template <class To, class From>
inline To stored(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From top = static_cast<From>(std::uint64_t{1} << (sizeof(To) * 8 - 1)) * (std::is_signed_v<To> ? 1 : 2);
    if (x != x) return 0;
    if (x >= top) return std::numeric_limits<To>::max();
    if constexpr (std::is_signed_v<To>) {
      if (x < -top) return std::numeric_limits<To>::min();
    } else {
      if (x <= From(-1)) return static_cast<To>(stored<std::int64_t>(x));
    }
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

inline std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
template <class T, class U>
inline T from_bits(U x) {
  return std::bit_cast<T>(x);
}

using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atan2, std::atanh, std::cbrt, std::ceil,
    std::copysign, std::cos, std::cosh, std::erf, std::exp2, std::expm1, std::floor, std::fma, std::fmod, std::log,
    std::log10, std::log1p, std::log2, std::sin, std::sinh, std::sqrt, std::tan, std::tanh, std::trunc;

/// e^x for y, which is x within [-104, 89]: no branch, so that compilers vectorize loops over it; below 2 ulp. Cody and
/// Waite's reduction by ln 2, then a polynomial. F is float or a vector of floats, I the integers of its size.
template <class F, class I>
inline F exp_within(F y) {
  const F t = y * 1.44269504f + 12582912.0f, n = t - 12582912.0f;
  const F r = (y - n * 0.693145751953125f) - n * 1.42860682030941723e-6f;
  F p = r * 0.00139507295396029196f + 0.00836902482913322971f;
  p = p * r + 0.0416662022301293375f;
  p = p * r + 0.166665177118883376f;
  p = p * r + 0.500000009629002301f;
  p = (p * r * r + r) + 1.0f;
  const I whole = std::bit_cast<I>(t) - 0x4b400000, half = whole >> 1;
  return p * std::bit_cast<F>((half + 127) << 23) * std::bit_cast<F>((whole - half + 127) << 23);
}
inline float exp(float x) {
  return exp_within<float, std::int32_t>(x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x);
}
inline double exp(double x) { return std::exp(x); }

template <class T>
inline T abs(T x) {
  return x < T(0) ? T(0) - x : x + T(0);
}
template <class T>
inline T max(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
inline T min(T a, T b) {
  return a < b || a != a ? a : b;
}
inline vec<float, lanes> max(vec<float, lanes> a, vec<float, lanes> b) { return ((a > b) | (a != a)) ? a : b; }
inline vec<float, lanes> max(vec<float, lanes> a, float b) { return max(a, splat<vec<float, lanes>>(b)); }
inline vec<float, lanes> max(float a, vec<float, lanes> b) { return max(splat<vec<float, lanes>>(a), b); }
inline vec<float, lanes> min(vec<float, lanes> a, vec<float, lanes> b) { return ((a < b) | (a != a)) ? a : b; }
inline vec<float, lanes> min(vec<float, lanes> a, float b) { return min(a, splat<vec<float, lanes>>(b)); }
inline vec<float, lanes> min(float a, vec<float, lanes> b) { return min(splat<vec<float, lanes>>(a), b); }
inline vec<float, lanes> exp(vec<float, lanes> x) {
  return exp_within<vec<float, lanes>, vec<std::int32_t, lanes>>(min(max(x, -104.0f), 89.0f));
}
/// What attention computes of whole vectors.
struct of_vectors {
  static vec<float, lanes> exp(vec<float, lanes> x) { return math::exp(x); }
  static vec<float, lanes> max(vec<float, lanes> a, vec<float, lanes> b) { return math::max(a, b); }
  static float sum(vec<float, lanes> x) {
    float all = x[0];
    for (int i = 1; i < lanes; ++i) all += x[i];
    return all;
  }
};
template <class T>
inline T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(0) - T(1) : x;
}
template <class T>
inline bool isnan(T x) {
  return x != x;
}
template <class T>
inline bool isinf(T x) {
  return abs(x) > std::numeric_limits<T>::max();
}
template <class T>
inline T round(T x) {  // halves to even
  return std::rint(x);
}
template <class T>
inline T recip(T x) {
  return T(1) / x;
}
template <class T>
inline T rsqrt(T x) {
  return T(1) / std::sqrt(x);
}
template <class T>
inline T sigmoid(T x) {
  const T e = exp(T(0) - abs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}
template <class T>
inline T mod(T a, T b) {  // with the sign of b
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    const T r = b == T(-1) ? T(0) : a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  } else {
    const T r = std::fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
}
inline std::int64_t fmod(std::int64_t a, std::int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
inline std::uint64_t fmod(std::uint64_t a, std::uint64_t b) { return b == 0 ? 0 : a % b; }
template <class T>
inline T power(T x, int n) {
  T y = x;
  for (int i = 1; i < n; ++i) y *= x;
  return y;
}
template <class T>
inline T pow(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    if (y < T(0)) return x == T(1) ? T(1) : x + T(1) == T(0) ? (y % T(2) == T(0) ? T(1) : x) : T(0);
    std::uint64_t r = 1, b = static_cast<std::uint64_t>(x);
    for (auto e = static_cast<std::uint64_t>(y); e != 0; e >>= 1, b *= b)
      if (e & 1) r *= b;
    return static_cast<T>(r);
  } else {
    return std::pow(x, y);
  }
}
/// Positions in an extent n: that an index names (negative ones count from the end), or the nearest one; of an element
/// that stands for position i of a tensor continued at its ends.
inline std::int64_t nearest(std::int64_t i, std::int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }
inline std::int64_t picked(std::int64_t i, std::int64_t n) { return nearest(i < 0 ? i + n : i, n); }
inline std::int64_t wrapped(std::int64_t i, std::int64_t n) { return (i % n + n) % n; }
inline std::int64_t reflected(std::int64_t i, std::int64_t n) {
  const std::int64_t r = n == 1 ? 0 : wrapped(i, 2 * (n - 1));
  return r < n ? r : 2 * (n - 1) - r;
}
inline bool logical_and(bool a, bool b) { return a && b; }
inline bool logical_or(bool a, bool b) { return a || b; }
inline bool logical_xor(bool a, bool b) { return a != b; }
inline bool logical_not(bool a) { return !a; }
}  // namespace math
)text";

}  // namespace kiln::aot
