#pragma once
#include "kiln/graph/module.hpp"

// What reports and errors call things of a program.
namespace kiln::detail {

inline std::string label_of(const basic_instruction<operation>& i, std::uint32_t index) {
  return i.name.empty() && i.kind == instruction_kind::op ? std::string(i.op.name()) + "#" + std::to_string(index)
                                                          : i.name.str();
}

/// Calls `work`, whose errors then name the instruction.
template <class Work> void naming(const basic_instruction<operation>& i, std::uint32_t index, const Work& work) {
  try {
    work();
  } catch (error& e) {
    if (i.kind == instruction_kind::op) e.at_op(i.op.name());
    throw e.at_instruction(label_of(i, index));
  }
}

/// What is wrong where two extents that a view takes as equal differ in a run.
inline std::string equality(const basic_instruction<operation>& view, dimension x, dimension y,
                            std::string_view where) {
  return std::string(view.op.name()) + ": dimension '" + to_string(x) + "' equals '" + to_string(y) + "'" +
         (where.empty() ? "" : " (at " + std::string(where) + ")");
}

}  // namespace kiln::detail
