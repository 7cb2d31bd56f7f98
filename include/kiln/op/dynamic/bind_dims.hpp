#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// Gives the elements of an i64 tensor of rank 1 the names of symbols, so that extents and attributes of what follows
/// may mention values that only the run computes. The result is the tensor; a value outside its symbol's bounds is a
/// `shape_mismatch` error of the run.
struct bind_dims {
  inline_vector<dimension, 2 * max_rank> names{};  ///< a symbol for each element

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return fault::of(errc::invalid_argument, "number of inputs", 1, in.size());
    if (in[0].type != dtype::i64) return fault::of(errc::shape_mismatch, "dtype of extents", dtype::i64, in[0].type);
    if (in[0].rank() != 1 || !(in[0].lens[0] == dimension(names.size())))
      return fault::of(errc::shape_mismatch, "an extent for each name", names.size(), in[0].lens);
    return in[0];
  }
  small_vector<argument> produce(std::span<const argument> in) const;
  void bind(std::span<const argument> results, bindings& symbols) const;
};

}  // namespace kiln::op
