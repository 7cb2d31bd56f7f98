#pragma once
#include "kiln/op/view_map.hpp"

namespace kiln::op {

/// A matrix: dims before `axis` become its rows, the others its columns (ONNX Flatten). axis is in [-rank, rank].
struct flatten {
  std::int64_t axis = 1;

  constexpr result<layout> map(const layout& in) const {
    const auto rank = static_cast<std::int64_t>(in.lens.size());
    const std::int64_t split = axis < 0 ? axis + rank : axis;
    if (split < 0 || split > rank) return fault::of(errc::shape_mismatch, "an axis lies within the rank", rank, axis);
    dimension rows = 1, columns = 1;
    for (std::int64_t i = 0; i < rank; ++i) (i < split ? rows : columns) *= in.lens[static_cast<std::size_t>(i)];
    dims to;
    to.push_back(rows);
    to.push_back(columns);
    return detail::reshaped(in, to);
  }
};

}  // namespace kiln::op
