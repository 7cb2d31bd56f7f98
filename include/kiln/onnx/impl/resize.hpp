#pragma once
#include <string>

#include "kiln/onnx/impl/parse.hpp"

namespace kiln::onnx {

/// How ONNX Resize finds an output element's place among the input's, and what it makes of those around.
struct resize_rules {
  std::string mode = "nearest", coordinates = "half_pixel", rounding = "round_prefer_floor";
  float cubic = -0.75f, outside = 0;
  bool exclude_outside = false, antialias = false;
};

/// A resize of which some extent, size or scale is the run's. `scales` or `sizes` is a list with a number for each
/// axis, `region` one with two, where the coordinates ask for it.
value resize_in_run(call& c, const resize_rules& r, const ints& axes, value scales, value sizes, value region);

}  // namespace kiln::onnx
