#include "kiln/onnx/impl/parse.hpp"
#include "kiln/onnx/impl/run_axes.hpp"

// Operators whose elements are picked by position or by index.
namespace kiln::onnx {

namespace {

variables parse_gather(call& c) { return {c.in(0).gather(c.in(1), c.integer("axis", 0))}; }
variables parse_gather_elements(call& c) {
  return {c.build.add(op::gather_elements{c.integer("axis", 0)}, c.in(0), c.in(1))};
}
variables parse_gather_nd(call& c) {
  return {c.build.add(op::gather_nd{c.integer("batch_dims", 0)}, c.in(0), c.in(1))};
}

op::scatter_mode scatter_mode_of(const call& c) {
  const auto name = c.text("reduction", "none");
  for (const auto m : {op::scatter_mode::none, op::scatter_mode::add, op::scatter_mode::mul, op::scatter_mode::min,
                       op::scatter_mode::max})
    if (op::to_string(m) == name) return m;
  c.malformed("reduction is '" + std::string(name) + "'");
}
variables parse_scatter_elements(call& c) {
  return {c.build.add(op::scatter_elements{c.integer("axis", 0), scatter_mode_of(c)}, c.in(0), c.in(1), c.in(2))};
}
variables parse_scatter_nd(call& c) {
  return {c.build.add(op::scatter_nd{scatter_mode_of(c)}, c.in(0), c.in(1), c.in(2))};
}

variables parse_one_hot(call& c) {
  value depth_of = c.in(1);
  value indices = c.in(0);
  if (!is_integer(depth_of.type())) depth_of = depth_of.reshape({}).convert(dtype::i64);
  call at{c.build, c.source, c.version, {variable(depth_of)}, c.bodies};
  const auto depth = at.extents(0, "the depth");
  if (depth.size() != 1) c.malformed("depth is one number");
  return {c.build.add(op::one_hot{depth[0], c.integer("axis", -1)}, indices.convert(dtype::i64), c.in(2))};
}

variables top_k(call& c, dimension k) {
  const value best =
      c.build.add(op::topk{k, c.integer("axis", -1), c.flag("largest", true), c.flag("sorted", true)}, c.in(0));
  return {best, best.result(1)};
}
variables parse_top_k_1(call& c) { return top_k(c, c.integer("k", 0)); }
variables parse_top_k(call& c) {
  const auto k = c.bound(listed(c.in(1), 1), "the number of elements kept", 0);
  if (k.size() != 1) c.malformed("k is one number");
  return top_k(c, k[0]);
}

variables parse_cumsum(call& c) {
  if (is_open(c, 1)) {
    const value x = c.in(0), flags = axis_flags(c, counted_axes(c, 1, x.rank()), x.rank());
    const bool exclusive = c.flag("exclusive"), reverse = c.flag("reverse");
    return {along_flagged(c, x, flags, [&](value v, const ints& axis) {
      return v | op::cumsum{axis[0], exclusive, reverse};
    })};
  }
  const auto axis = c.numbers(1, "the axis");
  if (axis.size() != 1) c.malformed("axis is one number");
  return {c.in(0) | op::cumsum{axis_within(c, axis[0], c.in(0).rank()), c.flag("exclusive"), c.flag("reverse")}};
}

variables parse_trilu(call& c) {
  if (c.has(1) && !c.constant(1)) {  // the run's diagonal: a mask by positions
    const value x = c.in(0);
    if (x.rank() < 2) c.malformed("the input has rows and columns");
    const dims lens{x.dim(-2), x.dim(-1)};
    const value from_diagonal = c.build.add(op::iota{lens, 1, dtype::i64}) - c.build.add(op::iota{lens, 0, dtype::i64});
    const value k = c.in(1).convert(dtype::i64).reshape({});
    const value dropped = c.flag("upper", true) ? from_diagonal < k : from_diagonal > k;
    return {dropped.where(c.build.scalar(x.type(), 0), x)};
  }
  const auto k = c.has(1) ? c.numbers(1, "the diagonal") : small_vector<std::int64_t>{0};
  if (k.size() != 1) c.malformed("k is one number");
  return {c.in(0) | op::tri{c.flag("upper", true), k[0]}};
}

// Positions along the time axis, counted backwards inside each sequence's length.
variables parse_reverse_sequence(call& c) {
  const value x = c.in(0);
  const std::int64_t batch = axis_within(c, c.integer("batch_axis", 1), x.rank()),
                     time = axis_within(c, c.integer("time_axis", 0), x.rank());
  if (batch == time) c.malformed("batch_axis and time_axis differ");
  dims along(x.rank(), dimension(1)), lengths(x.rank(), dimension(1));
  along[static_cast<std::size_t>(time)] = x.dim(time);
  lengths[static_cast<std::size_t>(batch)] = x.dim(batch);
  const value position = c.build.add(op::iota{along, time, dtype::i64}),
              length = c.in(1).convert(dtype::i64).reshape(lengths);
  const value at = (position < length).where(length - 1 - position, position);
  return {c.build.add(op::gather_elements{time}, x, at.broadcast_to(x.get_shape().lens))};
}

}  // namespace

std::span<const row> index_rows() {
  static constexpr row rows[] = {
      {"", "CumSum", 11, parse_cumsum},
      {"", "Gather", 1, parse_gather},
      {"", "GatherElements", 11, parse_gather_elements},
      {"", "GatherND", 11, parse_gather_nd},
      {"", "OneHot", 9, parse_one_hot},
      {"", "ReverseSequence", 10, parse_reverse_sequence},
      {"", "Scatter", 9, parse_scatter_elements},
      {"", "ScatterElements", 11, parse_scatter_elements},
      {"", "ScatterND", 11, parse_scatter_nd},
      {"", "TopK", 1, parse_top_k_1},
      {"", "TopK", 10, parse_top_k},
      {"", "Trilu", 14, parse_trilu},
  };
  return rows;
}

}  // namespace kiln::onnx
