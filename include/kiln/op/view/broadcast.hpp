#pragma once
#include "kiln/op/view_map.hpp"

namespace kiln::op {

/// Repeats the input inside the extents `to`: its dims stand at axis, axis + 1, …; every other dim has stride 0
/// (MIGraphX broadcast). A negative axis counts from the end of `to`.
struct broadcast {
  std::int64_t axis = 0;
  dims to{};
  static constexpr bool axes_of_result = true;

  constexpr result<layout> map(const layout& in) const {
    const auto rank = static_cast<std::int64_t>(to.size()), own = static_cast<std::int64_t>(in.lens.size());
    const std::int64_t first = axis < 0 ? axis + rank : axis;
    if (first < 0 || first + own > rank)
      return fault::of(errc::shape_mismatch, "the input's dims lie within the broadcast dims", to, in.lens);
    layout out{to, dims(to.size(), dimension(0)), in.offset};
    for (std::size_t i = 0; i < in.lens.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(first) + i;
      const auto equal = same(in.lens[i], to[at]);
      if (equal && !*equal) return fault::of(errc::shape_mismatch, "dims agree from the axis on", to, in.lens);
      out.strides[at] = in.strides[i];
    }
    return out;
  }
};

}  // namespace kiln::op
