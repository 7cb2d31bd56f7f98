#include "kiln/graph/verify.hpp"

namespace kiln {

namespace detail {

void throw_graph_fault(const graph_fault& f) {
  error e(f.why);
  e.at_op(f.op.view());
  if (f.name.empty())
    e.at_instruction((f.module ? "@" + std::to_string(f.module) + " " : std::string()) + "%" +
                     std::to_string(f.instruction));
  else
    e.at_instruction(f.name.view());
  throw e;
}

}  // namespace detail

small_vector<graph_fault> find_faults(const program& p) { return detail::verifier<program>(p).run(); }

}  // namespace kiln
