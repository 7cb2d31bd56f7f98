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
  if (v.item.in_sequence)
    return {variable(c.build.add(op::optional_get{dtype::sequence, {}}, v.tensor), {v.item.type, v.item.rank})};
  if (v.item.rank >= 0)
    return {c.build.add(op::optional_get{v.item.type, c.fresh_dims(static_cast<std::size_t>(v.item.rank), "extent")},
                        v.tensor)};
  variable open = v.tensor;
  open.either = every_rank(c, v.item.type);
  return {open};
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
