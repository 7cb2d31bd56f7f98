#pragma once
#include "kiln/op/view_map.hpp"

namespace kiln::op {

/// Drops the named dims, whose extents are 1; without axes every dim whose extent is 1 for certain (ONNX Squeeze).
struct squeeze {
  ints axes{};

  constexpr result<layout> map(const layout& in) const {
    const auto named = detail::named_axes(axes, in.lens.size());
    if (!named) return named.why();
    layout out;
    out.offset = in.offset;
    for (std::size_t i = 0; i < in.lens.size(); ++i) {
      const auto one = same(in.lens[i], dimension(1));
      if ((*named)[i] && !one)
        return fault::of(errc::unsupported, "a squeezed extent is 1 for every size", 1, in.lens[i]);
      if ((*named)[i] && !*one) return fault::of(errc::shape_mismatch, "a squeezed extent is 1", 1, in.lens[i]);
      if ((*named)[i] || (axes.empty() && one && *one)) continue;
      out.lens.push_back(in.lens[i]);
      out.strides.push_back(in.strides[i]);
    }
    return out;
  }
};

}  // namespace kiln::op
