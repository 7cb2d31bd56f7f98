#include "kiln/onnx/impl/parse_body.hpp"
#include "kiln/op/dynamic/sequence.hpp"

// An optional that is known to hold something is what it holds; a run's optional is a value of its own.
namespace kiln::onnx {

namespace {

bool open_optional(const variable& v) { return v.tensor && v.tensor.type() == dtype::optional; }

variables parse_optional(call& c) {
  if (c.has(0)) return {c.inputs[0]};
  variable none;
  none.is_empty = true;
  none.item.rank = item_type::none;
  return {none};
}

variables parse_has(call& c) {
  if (c.has(0) && open_optional(c.inputs[0])) return {c.build.add(op::optional_has{}, c.inputs[0].tensor)};
  return {c.build.scalar(dtype::boolean, c.has(0) && !c.inputs[0].is_empty)};
}

variables parse_get(call& c) {
  if (!c.has(0)) c.malformed("input 0 is missing");
  const variable& v = c.inputs[0];
  if (v.is_empty) c.malformed("an empty optional is read");
  if (!open_optional(v)) return {v};
  const shape s = v.item.in_sequence ? shape{dtype::sequence, {}} : stated_shape(c, v.item, "what an optional holds");
  return {variable(c.build.add(op::optional_get{s.type, s.lens}, v.tensor), {v.item.type, v.item.rank})};
}

}  // namespace

std::span<const row> optional_rows() {
  static constexpr row rows[] = {
      {"", "Optional", 15, parse_optional},
      {"", "OptionalGetElement", 15, parse_get},
      {"", "OptionalHasElement", 15, parse_has},
  };
  return rows;
}

}  // namespace kiln::onnx
