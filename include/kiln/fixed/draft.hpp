#pragma once
#include "kiln/core/layout.hpp"
#include "kiln/fixed/arena.hpp"

namespace kiln::fixed {

/// How a value lies in one of a plan's buffers.
struct lying {
  std::uint32_t in = buffer::never;
  layout at;
};

/// A value that a step reads or writes.
struct operand {
  lying where;
  dtype type = dtype::f32;
};

/// A step while it is planned.
struct draft {
  kernel record;
  small_vector<operand> inputs, outputs;
  small_vector<node> nodes;
  small_vector<std::uint32_t> results;
  std::uint32_t scratch = buffer::never;
  std::uint32_t from = buffer::never;  ///< the instruction it computes
};

}  // namespace kiln::fixed
