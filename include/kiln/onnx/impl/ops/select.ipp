#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/op/dynamic/selection.hpp"

// Operators whose results have extents that depend on the input's elements.
namespace kiln::onnx {

namespace {

variables import_nonzero(node_context& c) {
  return {c.build.add(op::nonzero{c.bodies->fresh_symbol("count")}, c.in(0))};
}

variables import_compress(node_context& c) {
  const value x = c.in(0);
  op::compress o;
  o.flat = !c.find("axis");
  if (!o.flat) o.along = axis_within(c, c.integer("axis", 0), x.rank());
  if (const literal* condition = c.constant(1)) {
    small_vector<std::int64_t> kept;
    const auto bits = condition->to<bool>();
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i]) kept.push_back(static_cast<std::int64_t>(i));
    const value at = c.build.constant<std::int64_t>(dtype::i64, {static_cast<std::int64_t>(kept.size())}, kept);
    return {(o.flat ? x.reshape({x.get_shape().elements()}) : x).gather(at, o.along)};
  }
  o.count = c.bodies->fresh_symbol("count");
  return {c.build.add(o, x, c.in(1))};
}

variables import_unique(node_context& c) {
  const value x = c.in(0);
  op::unique o;
  o.flat = !c.find("axis");
  if (!o.flat) o.along = axis_within(c, c.integer("axis", 0), x.rank());
  o.ascending = c.flag("sorted", true);
  o.count = c.bodies->fresh_symbol("count");
  const value first = c.build.add(o, x);
  return {first, first.result(1), first.result(2), first.result(3)};
}

variables import_non_max_suppression(node_context& c) {
  const auto scalar = [&](std::size_t i, dtype t) {
    return c.has(i) ? c.in(i).convert(t).reshape({}) : c.build.scalar(t, 0);
  };
  op::non_max_suppression o;
  o.centered = c.flag("center_point_box");
  o.has_least_score = c.has(4);
  o.count = c.bodies->fresh_symbol("count");
  return {c.build.add(o, c.in(0), c.in(1), scalar(2, dtype::i64), scalar(3, dtype::f32), scalar(4, dtype::f32))};
}

}  // namespace

std::span<const op_importer> select_importers() {
  static constexpr op_importer table[] = {
      {"", "Compress", 9, import_compress},
      {"", "NonMaxSuppression", 10, import_non_max_suppression},
      {"", "NonZero", 9, import_nonzero},
      {"", "Unique", 11, import_unique},
  };
  return table;
}

}  // namespace kiln::onnx
