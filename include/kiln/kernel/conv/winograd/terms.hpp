#pragma once

#include <algorithm>

#include "kiln/kernel/conv/winograd/transform_5.hpp"
#include "kiln/kernel/conv/winograd/transform_strided.hpp"

namespace kiln::kernels {

/// The terms of one direction of a tile. (A base, since a class can't call its own functions in the initializers of its
/// constants.)
template <class Transform> struct line_terms {
  static constexpr int side = Transform::inputs;
  static constexpr bool one_each = !requires { Transform::point_of_term; };  ///< each point has one term

  static constexpr int point_of(int term) {
    if constexpr (one_each)
      return term;
    else
      return Transform::point_of_term[static_cast<std::size_t>(term)];
  }
};

/// The output transform: a transform's own, or that of another one which it shares.
template <class Transform> struct transform_back { using type = Transform; };
template <class Transform>
requires requires { typename Transform::back; }
struct transform_back<Transform> {
  using type = typename Transform::back;
};

/// The terms of a tile that is transformed in both directions, in the order of the GEMMs that add them up.
template <class Transform> struct tile_terms : line_terms<Transform> {
  using line_terms<Transform>::side, line_terms<Transform>::point_of;
  using back = typename transform_back<Transform>::type;
  static constexpr int all = side * side;
  static constexpr int points = point_of(side - 1) + 1;  ///< of one direction
  static constexpr int products = points * points;

  /// The first term of each product, then the number of all terms.
  static constexpr std::array<int, products + 1> first = [] {
    std::array<int, products + 1> out{};
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j)
        for (int p = point_of(i) * points + point_of(j); p < products; ++p) ++out[static_cast<std::size_t>(p + 1)];
    return out;
  }();
  static constexpr int most_of_product = [] {
    int most = 0;
    for (std::size_t p = 0; p < products; ++p) most = std::max(most, first[p + 1] - first[p]);
    return most;
  }();
  /// Index of the term (i, j).
  static constexpr int place_of(int i, int j) { return places[static_cast<std::size_t>(i * side + j)]; }

 private:
  static constexpr std::array<int, all> places = [] {
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
