#pragma once
#include "kiln/op/view_map.hpp"

namespace kiln::op {

/// numpy's broadcast to the extents `to`: dims align at the right, an extent of 1 is repeated (stride 0), missing dims
/// are added in front (ONNX Expand once its shape is resolved). Extents that may or may not agree keep their stride:
/// the run checks them.
struct multibroadcast {
  dims to{};

  constexpr result<layout> map(const layout& in) const {
    if (in.lens.size() > to.size())
      return fault::of(errc::shape_mismatch, "a broadcast does not drop dims", in.lens, to);
    const std::size_t added = to.size() - in.lens.size();
    layout out{to, dims(to.size(), dimension(0)), in.offset};
    for (std::size_t i = 0; i < in.lens.size(); ++i) {
      const dimension from = in.lens[i], into = to[added + i];
      if (from == dimension(1) && !(into == from)) continue;
      const auto equal = same(from, into);
      if (equal && !*equal) return fault::of(errc::shape_mismatch, "dims broadcast together", to, in.lens);
      out.strides[added + i] = in.strides[i];
    }
    return out;
  }
};

}  // namespace kiln::op
