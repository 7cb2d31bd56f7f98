#pragma once

#include <cmath>
#include <limits>

#include "kiln/core/math/basic.hpp"
#include "kiln/kernel/int8/problem.hpp"
#include "kiln/kernel/simd/vector.hpp"
#include "kiln/op/pointwise/gelu.hpp"

namespace kiln::kernels {

/// Bytes at `p` as 32-bit integers, in the one instruction that compilers miss.
template <is_vec V, class T> KILN_FN V widen_bytes(const vec<T, lanes<V>>& bytes) {
#if KILN_HAS_MXCSR
  if constexpr (sizeof(V) > 16) {
    V wide;
    if constexpr (std::is_signed_v<T>)
      asm("vpmovsxbd %1, %0" : "=v"(wide) : "m"(bytes));
    else
      asm("vpmovzxbd %1, %0" : "=v"(wide) : "m"(bytes));
    return wide;
  }
#endif
  return convert<V>(bytes);
}

/// Whole numbers near x / scale within [low, high], ties to even.
struct byte_rounding {
  float scale = 1, inverse = 1;  ///< inverse: 1 / scale, rounded to nearest
  float low = 0, high = 0;       ///< whole numbers of at most 9 bits
  float again = 1;               ///< what whole numbers are multiplied by where they become floats again

  /// x / scale, at most the last bit of the quotient apart: one Newton step from the product with the inverse (P.
  /// Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990), where neither
  /// leaves the range of normal numbers. `rounds_as_division` tells whether that bit shows.
  template <is_vec V> KILN_FN V divide(V x) const {
    const V s = broadcast<V>(scale), i = broadcast<V>(inverse);
    if constexpr (!has_fma) {
      return x / s;
    } else {
      const V q = x * i;
      return multiply_add(multiply_add(-q, s, x), i, q);
    }
  }
  /// Whether every float goes to the whole number to which its division goes: only floats next to the edges between
  /// two numbers could differ, and each of those is tried.
  bool rounds_as_division() const {
    constexpr int nearest = 8;
    for (float edge = low - 0.5F; edge <= high + 0.5F; ++edge) {
      float x = scale * edge;
      for (int k = 0; k < nearest; ++k) x = std::nextafter(x, -std::numeric_limits<float>::infinity());
      for (int k = 0; k < 2 * nearest; ++k, x = std::nextafter(x, std::numeric_limits<float>::infinity())) {
        const float q = x * inverse, by_step = std::fma(std::fma(-q, scale, x), inverse, q);
        if (kiln::round(by_step) != kiln::round(x / scale)) return false;
      }
    }
    return true;
  }
  /// The whole number in the low mantissa bits: NaN stays NaN.
  template <is_vec V> KILN_FN V rounded(V x) const { return bounded(divide(x)); }
  /// Likewise of the quotient.
  template <is_vec V> KILN_FN V bounded(V quotient) const {
    V x = elementary::greater(broadcast<V>(low), quotient);
    x = elementary::lesser(broadcast<V>(high), x);
    return x + broadcast<V>(low_bits);
  }
  static constexpr float low_bits = 0x1.8p23F;
};

/// What becomes of the sums of an integer GEMM, in registers: y = sum * scale + bias; y = rounded(y) * a scale; y +=
/// a second bias; y += an addend, or y *= it; y = gelu(y); y = the greater of y and 0; then the result is y, rounded(y)
/// * a scale or the bytes nearest to y. Each part but the scale is optional.
struct requantization {
  enum class kind : std::uint8_t { none, unsigned_bytes, signed_bytes, floats };

  const float* scale = nullptr;      ///< by column, as many as whole vectors
  const float* bias = nullptr;       ///< likewise; or null
  const float* late_bias = nullptr;  ///< the second bias, likewise
  bool rounds = false;
  byte_rounding first;
  kind addend_kind = kind::none;
  std::int32_t addend_zero = 0;  ///< bytes: (stored - zero) * scale
  float addend_scale = 1;
  bool multiplies = false;  ///< by the addend
  enum class curve : std::uint8_t { none, gelu, gelu_of_tanh };
  curve activation = curve::none;
  bool rectifies = false;
  kind result_kind = kind::floats;
  bool rounds_floats = false;  ///< a result of floats is rounded(y) * its scale
  byte_rounding last;
  std::int32_t zero = 0;  ///< of the result's bytes

  const std::byte* addend = nullptr;  ///< of row 0, column 0; steps in elements
  std::ptrdiff_t addend_row = 0;
  std::byte* result = nullptr;
  std::ptrdiff_t result_row = 0;

  template <int Rows, int Vectors>
  KILN_FN void take(native_vec<std::int32_t> (&sum)[Rows][Vectors], std::int64_t row0, std::int64_t col0,
                    int cols) const {
    native_vec<float> y[Rows][Vectors];
    scale_sums(sum, y, col0);
    if (rounds) round_floats(y, first);
    if (late_bias) add_columns(y, late_bias + col0);
    if (addend_kind != kind::none) add(y, row0, col0, cols);
    if (activation != curve::none) activate(y);
    if (rectifies) each(y, [](native_vec<float> v) { return elementary::greater(native_vec<float>{}, v); });
    if (result_kind != kind::floats) return store_bytes(y, row0, col0, cols);
    if (rounds_floats) round_floats(y, last);
    store_floats(y, row0, col0, cols);
  }

 private:
  using floats = native_vec<float>;
  using integers = native_vec<std::int32_t>;
  static constexpr int lanes = native_lanes<float>;
  using bytes = vec<std::uint8_t, lanes>;

  template <int Rows, int Vectors, class F> KILN_FN static void each(floats (&y)[Rows][Vectors], F&& f) {
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) y[r][v] = f(y[r][v]);
  }
  template <int Rows, int Vectors>
  KILN_FN void scale_sums(integers (&sum)[Rows][Vectors], floats (&y)[Rows][Vectors], std::int64_t col0) const {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      const floats s = load<floats>(scale + col0 + v * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) y[r][v] = convert<floats>(sum[r][v]) * s;
    }
    if (bias) add_columns(y, bias + col0);
  }
  template <int Rows, int Vectors> KILN_FN static void add_columns(floats (&y)[Rows][Vectors], const float* from) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      const floats b = load<floats>(from + v * lanes);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) y[r][v] += b;
    }
  }
  template <int Rows, int Vectors>
  KILN_FN static void round_floats(floats (&y)[Rows][Vectors], const byte_rounding& to) {
    each(
        y, [&to](floats v) __attribute__((always_inline)) {
          return (to.rounded(v) - broadcast<floats>(byte_rounding::low_bits)) * broadcast<floats>(to.again);
        });
  }
  // Out of line: one text of so many instructions serves all tiles.
  [[gnu::noinline]] static void gelu(floats* y, int count, bool of_tanh) {
    for (int i = 0; i < count; ++i) y[i] = of_tanh ? op::gelu{true}(y[i]) : op::gelu{false}(y[i]);
  }
  template <int Rows, int Vectors> KILN_FN void activate(floats (&y)[Rows][Vectors]) const {
    floats copy[Rows * Vectors];
#pragma GCC unroll 64
    for (int i = 0; i < Rows * Vectors; ++i) copy[i] = y[i / Vectors][i % Vectors];
    gelu(copy, Rows * Vectors, activation == curve::gelu_of_tanh);
#pragma GCC unroll 64
    for (int i = 0; i < Rows * Vectors; ++i) y[i / Vectors][i % Vectors] = copy[i];
  }
  // Whether vector v of a tile is whole.
  template <int Vectors> static constexpr bool whole(int v, int cols) {
    return v + 1 < Vectors || cols == Vectors * lanes;
  }
  template <is_vec V, int Vectors, class T> KILN_FN static V part(const T* from, int v, int cols) {
    return whole<Vectors>(v, cols) ? load<V>(from + v * lanes) : load_n<V>(from + v * lanes, cols - v * lanes);
  }
  // A quarter of a register of bytes is moved in part as a register is, for which there are masks.
  template <int Vectors, class T> KILN_FN static integers widened(const T* from, int v, int cols) {
    using stored = vec<T, lanes>;
    if (whole<Vectors>(v, cols)) return widen_bytes<integers, T>(*reinterpret_cast<const stored*>(from + v * lanes));
    const auto all = load_n<native_vec<T>>(from + v * lanes, cols - v * lanes);
    return widen_bytes<integers, T>(lower_half(lower_half(all)));
  }
  KILN_FN static void store_part(float* to, floats y, int count) { store_n(to, y, count); }
  KILN_FN static void store_part(std::uint8_t* to, bytes y, int count) {
    const auto half = join(y, y);
    store_n(to, join(half, half), count);
  }
  template <int Rows, int Vectors>
  KILN_FN void add(floats (&y)[Rows][Vectors], std::int64_t row0, std::int64_t col0, int cols) const {
    const std::ptrdiff_t at = row0 * addend_row + col0;
    const bool by = multiplies;
    const auto join = [by](floats & to, floats x) __attribute__((always_inline)) { to = by ? to * x : to + x; };
    const auto of_bytes = [&]<class T>(const T* from) __attribute__((always_inline)) {
      const integers less = broadcast<integers>(addend_zero);
      const floats s = broadcast<floats>(addend_scale);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v)
          join(y[r][v], convert<floats>(widened<Vectors>(from + at + r * addend_row, v, cols) - less) * s);
    };
    if (addend_kind == kind::unsigned_bytes) {
      of_bytes(reinterpret_cast<const std::uint8_t*>(addend));
    } else if (addend_kind == kind::signed_bytes) {
      of_bytes(reinterpret_cast<const std::int8_t*>(addend));
    } else {
      const auto* const from = reinterpret_cast<const float*>(addend) + at;
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) join(y[r][v], part<floats, Vectors>(from + r * addend_row, v, cols));
    }
  }
  template <int Rows, int Vectors>
  KILN_FN void store_floats(const floats (&y)[Rows][Vectors], std::int64_t row0, std::int64_t col0, int cols) const {
    float* const to = reinterpret_cast<float*>(result) + row0 * result_row + col0;
    put<Rows, Vectors>(
        to, cols, [&](int r, int v) __attribute__((always_inline)) { return y[r][v]; });
  }
  template <int Rows, int Vectors>
  KILN_FN void store_bytes(const floats (&y)[Rows][Vectors], std::int64_t row0, std::int64_t col0, int cols) const {
    auto* const to = reinterpret_cast<std::uint8_t*>(result) + row0 * result_row + col0;
    const integers shift = broadcast<integers>(zero);
    const byte_rounding nearest = last;  // a store of bytes could change this object, for all that the compiler knows
    put<Rows, Vectors>(
        to, cols, [&](int r, int v) __attribute__((always_inline)) {
          return convert<bytes>(integers(nearest.rounded(y[r][v])) + shift);
        });
  }
  template <int Rows, int Vectors, class T, class Get> KILN_FN void put(T* to, int cols, Get&& get) const {
    const std::ptrdiff_t row = result_row;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        T* const at = to + r * row + v * lanes;
        if (whole<Vectors>(v, cols))
          store(at, get(r, v));
        else
          store_part(at, get(r, v), cols - v * lanes);
      }
  }
};

}  // namespace kiln::kernels
