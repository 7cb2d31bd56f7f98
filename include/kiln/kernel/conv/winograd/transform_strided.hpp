#pragma once

#include "kiln/kernel/conv/winograd/transform.hpp"

namespace kiln::kernels {

/// F(2, 3) at stride 2. The even inputs of a tile meet two of the weights and the odd ones the third, each as at stride
/// 1: F(2, 2) of the even ones has the products (d0 - d2) w0, d2 (w0 + w2) and (d4 - d2) w2, of which the first one
/// counts for the first output only and the last one for the second. So does each product of the odd inputs, d1 w1 and
/// d3 w1, which are added up there: three points of 2, 1 and 2 terms, 5 products instead of 6 (25 of 36 in a plane).
template <> struct winograd_transform<2, 3, 2> {
  static constexpr int outputs = 2, inputs = 5;
  static constexpr std::array<int, 5> point_of_term{0, 0, 1, 2, 2};

  template <class V> KILN_FN static void input(const V (&d)[5], V (&t)[5]) {
    t[0] = d[0] - d[2];
    t[1] = d[1];
    t[2] = d[2];
    t[3] = d[4] - d[2];
    t[4] = d[3];
  }
  template <class V> KILN_FN static void output(const V (&m)[3], V (&y)[2]) {
    y[0] = m[0] + m[1];
    y[1] = m[1] + m[2];
  }
  static constexpr std::array<std::array<double, 3>, 5> weights{
      {{1, 0, 0}, {0, 1, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}}};
};

/// F(2, 5) at stride 2: F(2, 3) of the even inputs, to whose points those of the odd ones' F(2, 2) are added that count
/// for the same outputs: 7 products instead of 10 (49 of 100 in a plane).
template <> struct winograd_transform<2, 5, 2> {
  static constexpr int outputs = 2, inputs = 7;
  static constexpr std::array<int, 7> point_of_term{0, 0, 1, 1, 2, 3, 3};

  template <class V> KILN_FN static void input(const V (&d)[7], V (&t)[7]) {
    t[0] = d[0] - d[4];
    t[1] = d[1] - d[3];
    t[2] = d[2] + d[4];
    t[3] = d[3];
    t[4] = d[4] - d[2];
    t[5] = d[2] - d[6];
    t[6] = d[3] - d[5];
  }
  using back = winograd_transform<2>;  ///< of the products
  static constexpr std::array<std::array<double, 5>, 7> weights{{{1, 0, 0, 0, 0},
                                                                 {0, 1, 0, 0, 0},
                                                                 {.5, 0, .5, 0, .5},
                                                                 {0, 1, 0, 1, 0},
                                                                 {.5, 0, -.5, 0, .5},
                                                                 {0, 0, 0, 0, 1},
                                                                 {0, 0, 0, 1, 0}}};
};

}  // namespace kiln::kernels
