#pragma once
#include "kiln/op/dynamic/sequence.hpp"

namespace kiln::op {

/// The rank of the tensor that an optional holds, i64; an empty one is an `invalid_argument` error of the run.
struct optional_rank {
  result<shape> compute_shape(std::span<const shape> in) const {
    return detail::read_from(dtype::optional, in, {dtype::i64, {}});
  }
  small_vector<argument> produce(std::span<const argument> in) const;
};

}  // namespace kiln::op
