#pragma once
#include "kiln/op/view_map.hpp"

namespace kiln::op {

/// The same elements in row-major order under other extents, fully resolved (ONNX Reshape; the importer replaces 0 and
/// -1). Symbolic element counts that are neither equal nor different for certain are taken as equal.
struct reshape {
  dims to{};

  constexpr result<layout> map(const layout& in) const { return detail::reshaped(in, to); }
};

}  // namespace kiln::op
