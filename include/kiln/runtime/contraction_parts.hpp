#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "kiln/graph/module.hpp"
#include "kiln/pass/channel_prologue.hpp"

namespace kiln {

/// A contraction, bare or fused with its pointwise users, taken apart.
struct contraction_parts {
  operation product;                 ///< the contraction
  std::size_t operands[2] = {0, 1};  ///< which inputs of the instruction it, or the prologue of its first one, reads
  std::optional<channel_prologue_form> prologue{};  ///< of the first operand; its parameters are the instruction's
  std::vector<std::size_t> extra;  ///< inputs that only the tail reads: the tail's parameters 1, 2, …
  module_graph tail;               ///< what follows, as a body whose parameter 0 is the product
  bool tailed = false;             ///< whether anything follows
};

/// The parts of an instruction; empty where it is something else. `is_constant(k)`, where it is given, says whether
/// input k is a constant of f32 that `lies_by_channel`: instructions with a prologue are empty without.
std::optional<contraction_parts> split_contraction(const program& whole,
                                                   const basic_instruction<operation>& instruction,
                                                   const std::function<bool(std::size_t)>& is_constant = {});

}  // namespace kiln
