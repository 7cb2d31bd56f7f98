#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Probabilities of classes, f32[n, classes], from those of the first of each pair of classes, f32[n, classes *
/// (classes
/// - 1) / 2] in the order (0, 1), (0, 2), …, (1, 2), …: the second method of Wu, Lin and Weng (2004), iterated to 0.005
/// / classes.
struct couple_probabilities {
  std::int64_t classes = 2;
  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return fault::of(errc::invalid_argument, "number of inputs", 1, in.size());
    if (classes < 2 || in[0].type != dtype::f32 || in[0].rank() != 2 ||
        !same(in[0].lens[1], classes * (classes - 1) / 2).value_or(true))
      return fault::of(errc::shape_mismatch, "an f32 column for each pair of classes", classes, in[0]);
    return shape{dtype::f32, {in[0].lens[0], classes}};
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

}  // namespace kiln::op
