#include "kiln/onnx/impl/ops/bodies.hpp"
#include "kiln/op/dynamic/sequence.hpp"

// An optional that is known to hold something is what it holds; otherwise it is a value of dtype optional.
namespace kiln::onnx {

namespace {

bool is_dynamic_optional(const variable& v) { return v.tensor && v.tensor.type() == dtype::optional; }

variables import_optional(node_context& c) {
  if (c.has(0)) return {c.inputs[0]};
  variable none;
  none.is_empty = true;
  none.item.rank = item_type::none;
  return {none};
}

variables import_has(node_context& c) {
  if (c.has(0) && is_dynamic_optional(c.inputs[0])) return {c.build.add(op::optional_has{}, c.inputs[0].tensor)};
  return {c.build.scalar(dtype::boolean, c.has(0) && !c.inputs[0].is_empty)};
}

variables import_get(node_context& c) {
  if (!c.has(0)) c.malformed("input 0 is missing");
  const variable& v = c.inputs[0];
  if (v.is_empty) c.malformed("an empty optional is read");
  if (!is_dynamic_optional(v)) return {v};
  if (v.item.in_sequence)
    return {variable(c.build.add(op::optional_get{dtype::sequence, {}}, v.tensor), {v.item.type, v.item.rank})};
  if (v.item.rank >= 0)
    return {c.build.add(op::optional_get{v.item.type, c.fresh_dims(static_cast<std::size_t>(v.item.rank), "extent")},
                        v.tensor)};
  variable out = v.tensor;
  out.possible_types = every_rank(c, v.item.type);
  return {out};
}

}  // namespace

std::span<const op_importer> optional_importers() {
  static constexpr op_importer table[] = {
      {"", "Optional", 15, import_optional},
      {"", "OptionalGetElement", 15, import_get},
      {"", "OptionalHasElement", 15, import_has},
  };
  return table;
}

}  // namespace kiln::onnx
