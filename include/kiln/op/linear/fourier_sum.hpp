#pragma once
#include <cstdint>

#include "kiln/core/math.hpp"

// The sum that a discrete Fourier transform is, for the op's reference and for kernels of GPUs. Freestanding.
namespace kiln::detail {

struct complex_number {
  double real = 0, imaginary = 0;
};
constexpr complex_number operator*(complex_number a, complex_number b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

/// exp(sign 2 pi i k / n), exact at quarters of a turn.
constexpr complex_number unit_root(std::int64_t k, std::int64_t n, double sign) {
  const std::int64_t quarters = 4 * (k % n) / n, rest = 4 * (k % n) - quarters * n;
  const double angle = 1.570796326794896619 * static_cast<double>(rest) / static_cast<double>(n);
  const double c = rest == 0 ? 1 : kiln::cos(angle), s = rest == 0 ? 0 : kiln::sin(angle);
  if (quarters == 0) return {c, sign * s};
  if (quarters == 1) return {-s, sign * c};
  return quarters == 2 ? complex_number{-c, -sign * s} : complex_number{s, -sign * c};
}

/// How a transform's signal is given: `given` numbers of one or two parts, after which zeros follow. In the half of a
/// spectrum the other half is the conjugate, and the numbers that are their own conjugates are real.
struct fourier_signal {
  std::int64_t n = 0;      ///< length of the transform
  std::int64_t given = 0;  ///< numbers in memory that are used
  bool is_complex = false, is_half = false;

  /// Number j < n; `part(at, p)` is part p of the number at `at` in memory.
  template <class Part> constexpr complex_number at(std::int64_t j, Part part) const {
    const bool mirrored = is_half && 2 * j > n;
    if (mirrored) j = n - j;
    if (j >= given) return {};
    const double real = part(j, 0);
    if (!is_complex || (is_half && (j == 0 || 2 * j == n))) return {real, 0};
    return {real, mirrored ? -part(j, 1) : part(j, 1)};
  }
};

/// The sum of x[j] exp(sign 2 pi i j k / n) over all j: of doubles, to about n * 1e-16 of the greatest summand.
template <class Part>
constexpr complex_number fourier_sum(const fourier_signal& x, std::int64_t k, double sign, Part part) {
  constexpr std::int64_t together = 16;  // powers of one root, which lose no more than they have bits to spare
  const complex_number step = x.n > 0 ? unit_root(k, x.n, sign) : complex_number{};
  complex_number sum;
  for (std::int64_t first = 0; first < x.n; first += together) {
    complex_number root = unit_root(first * k % x.n, x.n, sign), some;
    for (std::int64_t j = first; j < x.n && j < first + together; ++j) {
      const complex_number term = x.at(j, part) * root;
      some.real += term.real, some.imaginary += term.imaginary;
      root = root * step;
    }
    sum.real += some.real, sum.imaginary += some.imaginary;
  }
  return sum;
}

/// Where transforms along the middle of [outer, extent, inner, parts] read and write.
struct fourier_lines {
  std::int64_t from = 0, to = 0;     ///< extents of operand and result
  std::int64_t inner = 1;            ///< transforms beside one another
  std::int64_t parts = 1, made = 2;  ///< of a number, in operand and result
  bool inverse = false;

  /// Makes number `at` of the result, counted row-major; `load` and `store` convert elements.
  template <class T, class Load, class Store>
  constexpr void put(T* out, const T* in, const fourier_signal& signal, std::int64_t at, Load load, Store store) const {
    const std::int64_t i = at % inner, k = at / inner % to, outer = at / inner / to;
    const T* const line = in + (outer * from * inner + i) * parts;
    const auto sum = fourier_sum(signal, k, inverse ? 1 : -1,
                                 [&](std::int64_t j, std::int64_t p) { return load(line[j * inner * parts + p]); });
    const double scale = inverse ? 1 / static_cast<double>(signal.n) : 1;
    out[at * made] = store(sum.real * scale);
    if (made == 2) out[at * made + 1] = store(sum.imaginary * scale);
  }
};

}  // namespace kiln::detail
