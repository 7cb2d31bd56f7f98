#pragma once
#include "kiln/core/simd.hpp"
#include "kiln/op/arithmetic.hpp"

/// Quotients of integers, truncated, 0 for a divisor of 0, by way of floats: an integer division has no vector form.
namespace kiln::kernels::typed {

/// Of at most 32 bits: floats hold them exactly, and an inexact quotient is further from the next whole number than it
/// is rounded.
template <class T> void short_quotients(const T* x, const T* y, T* out, std::int64_t n) {
  using F = std::conditional_t<sizeof(T) == 4, double, float>;
  using Whole = std::conditional_t<sizeof(T) == 4, std::int64_t, std::int32_t>;
#pragma GCC ivdep
  for (std::int64_t k = 0; k < n; ++k) {
    const T by = y[k];
    const auto q = static_cast<Whole>(static_cast<F>(x[k]) / static_cast<F>(by == 0 ? T(1) : by));
    out[k] = by == 0 ? T(0) : static_cast<T>(q);
  }
}

/// Of 64 bits: vectors of numbers in [-2^51, 2^51), others one by one. Doubles of that size are whole where the bits of
/// `shifter` are their own beside those of the number, so that no conversion is needed. An inexact quotient is at least
/// 1 / y below the next whole number k, and doubles there lie k / 2^53 apart at most, which is less.
template <class T> class long_quotients {
  using V = native_vec<T>;
  using F = native_vec<double>;
  using U = bits_t<F>;
  static constexpr std::int64_t lanes = native_lanes<T>;
  static constexpr double shifter = elementary::shifter<F>;

  // Bits other than zero where a number is too large.
  static KILN_FN U beyond(V v) {
    if constexpr (std::is_signed_v<T>)
      return ((U)v + (std::uint64_t{1} << 51)) >> 52;
    else
      return (U)v >> 51;
  }
  static KILN_FN F as_doubles(V v) { return from_bits<F>(bits(broadcast<F>(shifter)) + (U)v) - shifter; }
  static KILN_FN V of_doubles(F f) { return (V)(bits(f + shifter) - bits(broadcast<F>(shifter))); }

 public:
  static void run(const T* x, const T* y, T* out, std::int64_t n) {
    std::int64_t k = 0;
    for (; k + lanes <= n; k += lanes) {
      const V a = load<V>(x + k), b = load<V>(y + k);
      if (elementary::any((beyond(a) | beyond(b)) != 0)) [[unlikely]] {
        one_by_one(x + k, y + k, out + k, lanes);
        continue;
      }
      const V zero = broadcast<V>(0);
      const V q = of_doubles(trunc(as_doubles(a) / as_doubles(select(b == zero, broadcast<V>(1), b))));
      store(out + k, select(b == zero, zero, q));
    }
    one_by_one(x + k, y + k, out + k, n - k);
  }

 private:
  static void one_by_one(const T* x, const T* y, T* out, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) out[k] = detail::quotient(x[k], y[k]);
  }
};

template <class T> void quotients(const T* x, const T* y, T* out, std::int64_t n) {
  if constexpr (sizeof(T) == 8)
    long_quotients<T>::run(x, y, out, n);
  else
    short_quotients(x, y, out, n);
}

}  // namespace kiln::kernels::typed
