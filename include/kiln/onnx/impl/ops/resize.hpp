#pragma once
#include <string>

#include "kiln/onnx/impl/ops/common.hpp"

namespace kiln::onnx {

/// How ONNX Resize finds the source position of an output element, and interpolates there.
struct resize_rules {
  std::string mode = "nearest", coordinates = "half_pixel", rounding = "round_prefer_floor";
  float cubic = -0.75f, outside = 0;
  bool exclude_outside = false, antialias = false;
};

/// A resize with extents, sizes or scales that a run computes. `scales` or `sizes` has a number for each axis, `region`
/// (for tf_crop_and_resize) two.
value dynamic_resize(node_context& c, const resize_rules& r, const ints& axes, value scales, value sizes, value region);

}  // namespace kiln::onnx
