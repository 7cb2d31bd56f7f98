#pragma once
#include "kiln/static_program/plan/records.hpp"

namespace kiln::aot {

/// A value that a step reads or writes.
struct operand {
  lower::placement at;
  dtype type = dtype::f32;
};

/// A step while it is planned.
struct draft {
  kernel record;
  small_vector<operand> inputs, outputs;
  small_vector<node> nodes;
  small_vector<std::uint32_t> results;
  std::uint32_t scratch = lower::none;
  std::uint32_t from = lower::none;  ///< the instruction it computes
};

}  // namespace kiln::aot
