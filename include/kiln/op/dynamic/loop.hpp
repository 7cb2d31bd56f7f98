#pragma once
#include "kiln/op/fields.hpp"

namespace kiln::op {

/// Runs a module again and again (ONNX Loop). Operands: the most iterations (i64), whether to begin (bool), `carried`
/// values, and what the body reads besides. The body takes the iteration's number (i64), the condition, the carried
/// values and the rest; it gives whether to go on, the next carried values, and values to collect. Results are the last
/// carried values, then everything collected, stacked along a new first dim.
struct loop {
  module_ref iteration{};
  std::int64_t carried = 0;
  static constexpr bool calls_bodies = true;
};

}  // namespace kiln::op
