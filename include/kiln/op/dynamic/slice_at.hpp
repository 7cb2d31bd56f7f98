#pragma once
#include "kiln/op/concepts.hpp"

namespace kiln::op {

/// A slice that a run places (ONNX Slice). Operands: data, then starts, ends, axes and steps (i64[n] each, n at most
/// the rank), which count as ONNX's do. `extents` names those of the result, a symbol for each dim.
struct slice_at {
  dims extents{};

  result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 5) return fault::of(errc::invalid_argument, "number of inputs", 5, in.size());
    if (extents.size() != in[0].rank())
      return fault::of(errc::shape_mismatch, "a name for each extent", in[0].rank(), extents.size());
    for (std::size_t i = 1; i < 5; ++i) {
      if (in[i].type != dtype::i64 || in[i].rank() != 1)
        return fault::of(errc::shape_mismatch, "starts, ends, axes and steps are lists of i64", "rank 1", in[i]);
      if (!same(in[i].lens[0], in[1].lens[0]).value_or(true))
        return fault::of(errc::shape_mismatch, "starts, ends, axes and steps are as many", in[1].lens, in[i].lens);
    }
    return shape{in[0].type, extents};
  }
  small_vector<argument> produce(std::span<const argument> in) const;

  /// The slice within the first operand's memory. Errors: `invalid_argument` for a step of 0, and for an axis that the
  /// data lacks or that is named twice.
  static argument view(std::span<const argument> in);
};

}  // namespace kiln::op
