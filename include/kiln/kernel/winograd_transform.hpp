#pragma once

#include <array>

#include "kiln/kernel/vector.hpp"

namespace kiln::kernels {

/// The transforms of the minimal filtering algorithm F(Outputs, Taps) in one dimension, for output tiles of 2 or 4
/// elements (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016), with interpolation points
/// 0, 1, -1 and infinity, and 2 and -2 for 6 inputs. A tile of `inputs` becomes as many terms, one for each point's
/// product; at strides above 1 `point_of_term` says whose product adds a term.
template <int Outputs, int Taps = 3, int Stride = 1>
struct winograd_transform;

template <>
struct winograd_transform<2> {
  static constexpr int outputs = 2, inputs = 4;

  template <class V>
  KILN_FN static void input(const V (&d)[4], V (&t)[4]) {
    t[0] = d[0] - d[2];
    t[1] = d[1] + d[2];
    t[2] = d[2] - d[1];
    t[3] = d[1] - d[3];
  }
  template <class V>
  KILN_FN static void output(const V (&m)[4], V (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  }
  /// Rows of the matrix that transforms three weights.
  static constexpr std::array<std::array<double, 3>, 4> weights{{{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}}};
};

template <>
struct winograd_transform<4> {
  static constexpr int outputs = 4, inputs = 6;

  template <class V>
  KILN_FN static void input(const V (&d)[6], V (&t)[6]) {
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
  template <class V>
  KILN_FN static void output(const V (&m)[6], V (&y)[4]) {
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

/// The terms of one direction of a tile.
template <class Transform>
struct line_terms {
  static constexpr int side = Transform::inputs;
  static constexpr bool one_each = !requires { Transform::point_of_term; };  ///< each point has one

  static constexpr int point_of(int term) {
    if constexpr (one_each)
      return term;
    else
      return Transform::point_of_term[static_cast<std::size_t>(term)];
  }
};

/// The terms of a tile that is transformed in both directions, in the order of the products that add them up.
template <class Transform>
struct tile_terms : line_terms<Transform> {
  using line_terms<Transform>::side, line_terms<Transform>::point_of;
  static constexpr int all = side * side;
  static constexpr int points = point_of(side - 1) + 1;  ///< of one direction
  static constexpr int products = points * points;

  /// The first term of each product, and behind the last one how many there are.
  static constexpr std::array<int, products + 1> first = [] {
    std::array<int, products + 1> out{};
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j)
        for (int p = point_of(i) * points + point_of(j); p < products; ++p) ++out[static_cast<std::size_t>(p + 1)];
    return out;
  }();
  /// Where the term (i, j) stands, by rows of `side`.
  static constexpr std::array<int, all> place = [] {
    std::array<int, all> out{};
    auto next = first;
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j)
        out[static_cast<std::size_t>(i * side + j)] =
            next[static_cast<std::size_t>(point_of(i) * points + point_of(j))]++;
    return out;
  }();
};

}  // namespace kiln::kernels
