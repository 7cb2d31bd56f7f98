#include "kiln/onnx/impl/parse.hpp"

namespace kiln::onnx {

namespace {

// A condition that is known now picks its branch; the other one never joins the graph.
variables parse_if(call& c) {
  const literal* condition = c.constant(0);
  if (!condition || condition->has_symbols()) c.unsupported("a condition that only a run knows");
  if (condition->elements() != 1) c.malformed("the condition is one bool");
  return c.bodies->import_body(c.body(condition->at<bool>(0) ? "then_branch" : "else_branch"), {});
}

}  // namespace

std::span<const row> control_rows() {
  static constexpr row rows[] = {{"", "If", 1, parse_if}};
  return rows;
}

}  // namespace kiln::onnx
