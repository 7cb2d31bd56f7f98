#pragma once
#include "kiln/op/view_map.hpp"

namespace kiln::op {

/// The same tensor under the extents `to`, of which each is, or may turn out, its own: the run compares them one by
/// one.
struct expect_dims {
  dims to{};

  constexpr result<layout> map(const layout& in) const {
    if (in.lens.size() != to.size())
      return fault::of(errc::shape_mismatch, "rank of the operand", to.size(), in.lens.size());
    for (std::size_t d = 0; d < to.size(); ++d)
      if (!same(in.lens[d], to[d]).value_or(true))
        return fault::of(errc::shape_mismatch, "the operand has the extents expected of it", to, in.lens);
    return layout{to, in.dense() ? row_major(to) : in.strides, in.offset};
  }
};

}  // namespace kiln::op
