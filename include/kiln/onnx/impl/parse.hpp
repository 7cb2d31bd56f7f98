#pragma once
#include "kiln/onnx/impl/rows.hpp"
#include "kiln/onnx/row.hpp"

// What the parsers share.
namespace kiln::onnx {

/// One input, one op without attributes.
template <class Op>
variables parse_unary(call& c) {
  return {c.build.add(Op{}, c.in(0))};
}
/// Two inputs, broadcast as numpy does.
template <class Op>
variables parse_binary(call& c) {
  return {c.build.add(Op{}, c.in(0), c.in(1))};
}
/// The second operand under the rules before operator set 7: attribute `broadcast` allows it, `axis` says where its
/// dims stand among the first operand's.
inline value align_operand(const call& c, value b) {
  if (!c.flag("broadcast") || !c.find("axis")) return b;
  const auto rank = static_cast<std::int64_t>(c.in(0).rank()), own = static_cast<std::int64_t>(b.rank());
  const std::int64_t axis = c.integer("axis", 0), first = axis < 0 ? axis + rank : axis;
  ints behind;
  for (std::int64_t d = first + own; d < rank; ++d) behind.push_back(d - first);
  return behind.empty() ? b : b.unsqueeze(behind);
}
template <class Op>
variables parse_binary_1(call& c) {
  return {c.build.add(Op{}, c.in(0), align_operand(c, c.in(1)))};
}

/// An axis counted from the front; outside the rank is a fault.
inline std::int64_t axis_within(const call& c, std::int64_t axis, std::size_t rank) {
  const std::int64_t a = normal_axis(axis, rank);
  if (a < 0) c.malformed("axis " + std::to_string(axis) + " lies outside rank " + std::to_string(rank));
  return a;
}
inline ints axes_within(const call& c, std::span<const std::int64_t> axes, std::size_t rank) {
  ints out;
  for (const std::int64_t a : axes) out.push_back(axis_within(c, a, rank));
  return out;
}
/// All axes from `first` on.
inline ints axes_from(std::int64_t first, std::size_t rank) {
  ints out;
  for (auto d = first; d < static_cast<std::int64_t>(rank); ++d) out.push_back(d);
  return out;
}
inline std::span<const std::int64_t> as_span(const small_vector<std::int64_t>& v) { return {v.data(), v.size()}; }

/// The value that shape arithmetic carries: an i64 literal of dimensions.
inline value dimensions_value(builder& b, const dims& lens, small_vector<dimension> values) {
  return b.constant(literal::of_dimensions(lens, std::move(values)));
}
/// Strings as a constant of rank 1, and one string as a constant of rank 0.
value strings_value(builder& b, std::span<const std::string> texts);
value text_value(builder& b, std::string_view text);
/// Whether elements are equal, and x where the condition holds, else y: of strings too.
value equal_elements(value x, value y);
value selected(value condition, value x, value y);
/// A list that has so many elements by its operator's rule, where its declared length is open.
inline value listed(value list, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  return list.get_shape().elements().is_constant() ? list : list.reshape({n});
}
/// The elements of a list of numbers that are known now, null where a run computes them.
std::vector<std::optional<dimension>> known_elements(const call& c, value list, std::string_view what);
/// f16 and bf16 values as f32, where a rule computes in f32; others as they are.
inline value widened(value x) { return x.type() == dtype::f16 || x.type() == dtype::bf16 ? x.convert(dtype::f32) : x; }

/// Integers as f64, where a rule computes in reals; floats as they are.
inline value as_real(value x) { return is_float(x.type()) ? x : x.convert(dtype::f64); }

/// The attributes of a convolution of input 0 with the weight that is input 1.
op::convolution read_convolution(const call& c);

}  // namespace kiln::onnx
