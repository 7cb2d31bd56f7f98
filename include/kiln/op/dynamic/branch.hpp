#pragma once
#include "kiln/op/fields.hpp"

namespace kiln::op {

/// Runs one of two modules (ONNX If): operand 0 is the condition, one bool; the next `then_inputs` operands are what
/// the first body reads, the others what the second does. Results are the outputs of the body that ran, so an extent
/// that differs between them is a symbol of its own.
struct branch {
  module_ref then_body{}, else_body{};
  std::int64_t then_inputs = 0;
  static constexpr bool calls_bodies = true;
};

}  // namespace kiln::op
