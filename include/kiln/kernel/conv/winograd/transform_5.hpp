#pragma once

#include "kiln/kernel/conv/winograd/transform.hpp"

namespace kiln::kernels {

/// F(2, 5): a tile has the inputs and the points of F(4, 3).
template <> struct winograd_transform<2, 5> {
  static constexpr int outputs = 2, inputs = 6;

  template <class V> KILN_FN static void input(const V (&d)[6], V (&t)[6]) { winograd_transform<4>::input(d, t); }
  template <class V> KILN_FN static void output(const V (&m)[6], V (&y)[2]) {
    y[0] = m[0] + (m[1] + m[2]) + (m[3] + m[4]);
    y[1] = multiply_add(broadcast<V>(2), m[3] - m[4], m[1] - m[2]) + m[5];
  }
  static constexpr std::array<std::array<double, 5>, 6> weights{{{1.0 / 4, 0, 0, 0, 0},
                                                                 {-1.0 / 6, -1.0 / 6, -1.0 / 6, -1.0 / 6, -1.0 / 6},
                                                                 {-1.0 / 6, 1.0 / 6, -1.0 / 6, 1.0 / 6, -1.0 / 6},
                                                                 {1.0 / 24, 1.0 / 12, 1.0 / 6, 1.0 / 3, 2.0 / 3},
                                                                 {1.0 / 24, -1.0 / 12, 1.0 / 6, -1.0 / 3, 2.0 / 3},
                                                                 {0, 0, 0, 0, 1}}};
};

}  // namespace kiln::kernels
