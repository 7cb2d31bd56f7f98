#include "kiln/graph/module.hpp"

namespace kiln::detail {

void throw_fault(const fault& f, std::string_view op, std::string_view label) {
  error e(f);
  e.at_op(op).at_instruction(label);
  throw e;
}

}  // namespace kiln::detail
