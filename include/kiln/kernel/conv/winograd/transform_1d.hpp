#pragma once

#include "kiln/kernel/conv/winograd/transform.hpp"

namespace kiln::kernels {

/// F(4, Taps) for other numbers of taps: the points are the first of 0, 1, -1, 2, -2, 1/2, -1/2, and infinity, so that
/// sums of products at the same point of several filters are transformed back together. The matrices are those of
/// S. Winograd, "Arithmetic Complexity of Computations", 1980, as Lavin and Gray give them.
template <int Taps> struct winograd_transform<4, Taps> {
  static constexpr int outputs = 4, inputs = Taps + 3;
  static_assert(Taps >= 1 && Taps <= 5);

 private:
  template <int Columns> using matrix = std::array<std::array<double, Columns>, inputs>;
  static constexpr int finite = inputs - 1;  // points
  static constexpr std::array<double, 7> points{0, 1, -1, 2, -2, .5, -.5};

  // Coefficients of the product of (x - a) over the points a other than the one of number `but`.
  static constexpr std::array<double, inputs> product_without(int but) {
    std::array<double, inputs> c{1};
    for (int i = 0; i < finite; ++i) {
      if (i == but) continue;
      for (std::size_t k = inputs; k-- > 0;) c[k] = (k > 0 ? c[k - 1] : 0) - points[static_cast<std::size_t>(i)] * c[k];
    }
    return c;
  }
  static constexpr matrix<inputs> input_matrix() {
    matrix<inputs> m{};
    for (int i = 0; i < inputs; ++i) m[static_cast<std::size_t>(i)] = product_without(i);
    return m;
  }
  static constexpr matrix<Taps> weight_matrix() {
    matrix<Taps> m{};
    for (std::size_t i = 0; i < finite; ++i) {
      double power = 1;
      for (std::size_t k = 0; k < finite; ++k)
        if (k != i) power /= points[i] - points[k];
      for (std::size_t k = 0; k < Taps; ++k, power *= points[i]) m[i][k] = power;
    }
    m[finite][Taps - 1] = 1;
    return m;
  }

 public:
  template <class V> KILN_FN static void input(const V (&d)[inputs], V (&t)[inputs]) {
    static constexpr matrix<inputs> from = input_matrix();
#pragma GCC unroll 8
    for (std::size_t i = 0; i < inputs; ++i) {
      t[i] = V{};
#pragma GCC unroll 8
      for (std::size_t k = 0; k < inputs; ++k)
        if (from[i][k] != 0) t[i] = multiply_add(broadcast<V>(static_cast<element_t<V>>(from[i][k])), d[k], t[i]);
    }
  }
  template <class V> KILN_FN static void output(const V (&m)[inputs], V (&y)[4]) {
    const V sum = m[1] + m[2], difference = m[1] - m[2];
    y[0] = m[0] + sum, y[1] = difference, y[2] = sum, y[3] = difference + m[finite];
    // the other points: those with an opposite come in pairs
#pragma GCC unroll 8
    for (int i = 3; i < finite; i += 2) {
      const auto times = [&](int power, V x) __attribute__((always_inline)) {
        double a = points[static_cast<std::size_t>(i)], p = 1;
        for (int k = 0; k < power; ++k) p *= a;
        return multiply_add(broadcast<V>(static_cast<element_t<V>>(p)), x, y[power]);
      };
      const V even = i + 1 < finite ? m[i] + m[i + 1] : m[i], odd = i + 1 < finite ? m[i] - m[i + 1] : m[i];
      y[0] += even;
      y[1] = times(1, odd), y[2] = times(2, even), y[3] = times(3, odd);
    }
  }
  /// Rows of the matrix that transforms the weights.
  static constexpr matrix<Taps> weights = weight_matrix();
};

}  // namespace kiln::kernels
