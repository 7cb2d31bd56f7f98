#pragma once

#include <array>

#include "kiln/kernel/simd/vector.hpp"

namespace kiln::kernels {

/// The transforms of the Winograd algorithm F(Outputs, Taps) in one dimension, for output tiles of 2 or 4
/// elements (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016), with interpolation points
/// 0, 1, -1 and infinity, and 2 and -2 for 6 inputs, at stride 1. A tile of `inputs` becomes as many terms, one for
/// each point's product; at strides above 1 `point_of_term` says whose product adds a term.
template <int Outputs, int Taps = 3, int Stride = 1> struct winograd_transform;

template <> struct winograd_transform<2> {
  static constexpr int outputs = 2, inputs = 4;

  template <class V> KILN_FN static void input(const V (&d)[4], V (&t)[4]) {
    t[0] = d[0] - d[2];
    t[1] = d[1] + d[2];
    t[2] = d[2] - d[1];
    t[3] = d[1] - d[3];
  }
  template <class V> KILN_FN static void output(const V (&m)[4], V (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  }
  /// Rows of the matrix that transforms three weights.
  static constexpr std::array<std::array<double, 3>, 4> weights{{{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}}};
};

template <> struct winograd_transform<4> {
  static constexpr int outputs = 4, inputs = 6;

  template <class V> KILN_FN static void input(const V (&d)[6], V (&t)[6]) {
    const V two = broadcast<V>(2), four = broadcast<V>(4), five = broadcast<V>(5);
    const V a = multiply_add(-four, d[2], d[4]);
    const V b = multiply_add(-four, d[1], d[3]);
    const V c = d[4] - d[2];
    const V e = two * (d[3] - d[1]);
    t[0] = multiply_add(four, d[0], multiply_add(-five, d[2], d[4]));
    t[1] = a + b;
    t[2] = a - b;
    t[3] = c + e;
    t[4] = c - e;
    t[5] = multiply_add(four, d[1], multiply_add(-five, d[3], d[5]));
  }
  template <class V> KILN_FN static void output(const V (&m)[6], V (&y)[4]) {
    const V two = broadcast<V>(2), four = broadcast<V>(4), eight = broadcast<V>(8);
    const V a = m[1] + m[2], b = m[1] - m[2], c = m[3] + m[4], e = m[3] - m[4];
    y[0] = m[0] + a + c;
    y[1] = multiply_add(two, e, b);
    y[2] = multiply_add(four, c, a);
    y[3] = multiply_add(eight, e, b) + m[5];
  }
  static constexpr std::array<std::array<double, 3>, 6> weights{{{1.0 / 4, 0, 0},
                                                                 {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                                                 {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                                                 {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                                                 {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                                                 {0, 0, 1}}};
};

}  // namespace kiln::kernels
