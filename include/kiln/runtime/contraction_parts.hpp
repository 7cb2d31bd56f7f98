#pragma once
#include <optional>
#include <vector>

#include "kiln/graph/module.hpp"

namespace kiln {

/// A contraction, bare or fused with its pointwise users, taken apart.
struct contraction_parts {
  operation product;                 ///< the contraction
  std::size_t operands[2] = {0, 1};  ///< which inputs of the instruction it reads
  std::vector<std::size_t> extra;    ///< inputs that only the tail reads: the tail's parameters 1, 2, …
  module_graph tail;                 ///< what follows, as a body whose parameter 0 is the product
  bool tailed = false;               ///< whether anything follows
};

/// The parts of an instruction; empty where it is something else.
std::optional<contraction_parts> split_contraction(const program& whole,
                                                   const basic_instruction<operation>& instruction);

}  // namespace kiln
