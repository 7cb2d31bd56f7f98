#include "kiln/onnx/impl/parse.hpp"
#include "kiln/op/dynamic/selection.hpp"

// Operators that find how many elements they give.
namespace kiln::onnx {

namespace {

variables parse_nonzero(call& c) { return {c.build.add(op::nonzero{c.bodies->fresh_symbol("count")}, c.in(0))}; }

variables parse_compress(call& c) {
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

variables parse_unique(call& c) {
  const value x = c.in(0);
  op::unique o;
  o.flat = !c.find("axis");
  if (!o.flat) o.along = axis_within(c, c.integer("axis", 0), x.rank());
  o.ascending = c.flag("sorted", true);
  o.count = c.bodies->fresh_symbol("count");
  const value first = c.build.add(o, x);
  return {first, first.result(1), first.result(2), first.result(3)};
}

variables parse_non_max_suppression(call& c) {
  const auto scalar = [&](std::size_t i, dtype t) {
    return c.has(i) ? c.in(i).convert(t).reshape({}) : c.build.scalar(t, 0);
  };
  op::non_max_suppression o;
  o.centred = c.flag("center_point_box");
  o.has_least_score = c.has(4);
  o.count = c.bodies->fresh_symbol("count");
  return {c.build.add(o, c.in(0), c.in(1), scalar(2, dtype::i64), scalar(3, dtype::f32), scalar(4, dtype::f32))};
}

}  // namespace

std::span<const row> select_rows() {
  static constexpr row rows[] = {
      {"", "Compress", 9, parse_compress},
      {"", "NonMaxSuppression", 10, parse_non_max_suppression},
      {"", "NonZero", 9, parse_nonzero},
      {"", "Unique", 11, parse_unique},
  };
  return rows;
}

}  // namespace kiln::onnx
