#pragma once
#include "kiln/op/view_map.hpp"

namespace kiln::op {

/// Inserts extents of 1 at `axes` of the result (ONNX Unsqueeze).
struct unsqueeze {
  ints axes{};
  static constexpr bool axes_of_result = true;

  constexpr result<layout> map(const layout& in) const {
    const std::size_t rank = in.lens.size() + axes.size();
    if (rank > max_rank) return fault::of(errc::limit, "rank of a tensor", max_rank, rank);
    const auto inserted = detail::named_axes(axes, rank);
    if (!inserted) return inserted.why();
    layout out{dims(rank, dimension(1)), dims(rank, dimension(1)), in.offset};
    dimension step = 1;  // an extent of 1 may have any stride; this one keeps row-major layouts row-major
    for (std::size_t i = rank, from = in.lens.size(); i-- > 0;) {
      if (!(*inserted)[i]) {
        --from;
        out.lens[i] = in.lens[from];
        step = in.strides[from];
      }
      out.strides[i] = step;
      if (!(*inserted)[i]) step = step * in.lens[from];
    }
    return out;
  }
};

}  // namespace kiln::op
