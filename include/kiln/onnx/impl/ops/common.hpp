#pragma once
#include "kiln/onnx/impl/import/op_table.hpp"
#include "kiln/onnx/op_importer.hpp"

// What op importers share.
namespace kiln::onnx {

inline constexpr std::string_view experimental = "experimental, no longer in the standard";

/// One input, one op without attributes.
template <class Op> variables import_unary(node_context& c) { return {c.build.add(Op{}, c.in(0))}; }
/// Two inputs, broadcast as numpy does.
template <class Op> variables import_binary(node_context& c) { return {c.build.add(Op{}, c.in(0), c.in(1))}; }
/// The second operand of a broadcast before operator set 7: `axis` is the first operand's axis of its first dim.
inline value align_operand(const node_context& c, value b) {
  if (!c.flag("broadcast") || !c.find("axis")) return b;
  const auto rank = static_cast<std::int64_t>(c.in(0).rank()), own = static_cast<std::int64_t>(b.rank());
  const std::int64_t axis = c.integer("axis", 0), first = axis < 0 ? axis + rank : axis;
  ints trailing;
  for (std::int64_t d = first + own; d < rank; ++d) trailing.push_back(d - first);
  return trailing.empty() ? b : b.unsqueeze(trailing);
}
template <class Op> variables import_binary_1(node_context& c) {
  return {c.build.add(Op{}, c.in(0), align_operand(c, c.in(1)))};
}

/// An axis counted from the front; `malformed` outside [-rank, rank).
inline std::int64_t axis_within(const node_context& c, std::int64_t axis, std::size_t rank) {
  const std::int64_t a = normal_axis(axis, rank);
  if (a < 0) c.malformed("axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
  return a;
}
inline ints axes_within(const node_context& c, std::span<const std::int64_t> axes, std::size_t rank) {
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
/// The enumerator that a string attribute names, the first by default.
template <class Enum>
Enum enum_attribute(const node_context& c, std::string_view name, std::initializer_list<Enum> values) {
  const std::string_view found = c.text(name, to_string(*values.begin()));
  for (const Enum v : values)
    if (to_string(v) == found) return v;
  c.malformed(std::string(name) + " is '" + std::string(found) + "'");
}
inline std::span<const std::int64_t> as_span(const small_vector<std::int64_t>& v) { return {v.data(), v.size()}; }

/// The axes that input i names, all of them if it is omitted.
inline ints axes_input(const node_context& c, std::size_t i, std::size_t rank) {
  return c.has(i) ? ints(as_span(c.numbers(i, "the list of axes"))) : axes_from(0, rank);
}
/// The axes that attribute `axes` names, all of them if it is absent.
inline ints axes_attribute(const node_context& c, std::size_t rank) {
  return c.find("axes") ? axes_within(c, c.integers("axes"), rank) : axes_from(0, rank);
}

/// An i64 constant of dimensions, as shape arithmetic has them.
inline value dimensions_value(builder& b, const dims& lens, small_vector<dimension> values) {
  return b.constant(literal::of_dimensions(lens, std::move(values)));
}
/// Strings as a constant of rank 1, and one string as a constant of rank 0.
value strings_value(builder& b, std::span<const std::string> texts);
value text_value(builder& b, std::string_view text);
/// Indices 0, 1, … along one axis, whose extent is n; the other extents of the `rank` are 1.
inline value indices_along(node_context& c, std::size_t rank, std::int64_t axis, dimension n, dtype type = dtype::i64) {
  dims lens(rank, dimension(1));
  lens[static_cast<std::size_t>(axis)] = n;
  return c.build.add(op::iota{lens, axis, type});
}
/// x[..., k, ...] without the axis.
inline value element_at(value x, std::int64_t axis, std::int64_t k) {
  return x.slice({{axis}, {k}, {k + 1}, {}}).squeeze({axis});
}
/// a && b (b alone where there is no a), a || b, a >= b and a <= b.
inline value both(value a, value b) { return a ? b.owner().add(op::logical_and{}, a, b) : b; }
inline value either(value a, value b) { return a.owner().add(op::logical_or{}, a, b); }
inline value not_less(value a, value b) { return a.owner().add(op::greater_or_equal{}, a, b); }
inline value not_greater(value a, value b) { return a.owner().add(op::less_or_equal{}, a, b); }
/// x[batch, ..., channels] as [batch, channels, ...], and back.
inline value channels_first(value x) {
  ints order{0, static_cast<std::int64_t>(x.rank()) - 1};
  for (std::size_t d = 1; d + 1 < x.rank(); ++d) order.push_back(static_cast<std::int64_t>(d));
  return x.transpose(order);
}
inline value channels_last(value x) {
  ints order{0};
  for (std::size_t d = 2; d < x.rank(); ++d) order.push_back(static_cast<std::int64_t>(d));
  order.push_back(1);
  return x.transpose(order);
}
/// x * sigmoid(alpha * x).
inline value swish(value x, float alpha) { return alpha == 1 ? x.silu() : x * (x * alpha).sigmoid(); }
/// (elements == y), and (condition ? x : y), of strings too.
value equal_elements(value x, value y);
value selected(value condition, value x, value y);
/// A list with the number of elements that its operator wants, where its own length is symbolic.
inline value listed(value list, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  return list.get_shape().elements().is_constant() ? list : list.reshape({n});
}
/// The elements of a list of numbers; none for each that a run computes.
std::vector<std::optional<dimension>> known_elements(const node_context& c, value list, std::string_view what);
/// f16 and bf16 as f32, other types as they are.
inline value widened(value x) { return x.type() == dtype::f16 || x.type() == dtype::bf16 ? x.convert(dtype::f32) : x; }

/// Integers as f64, floats as they are.
inline value as_real(value x) { return is_float(x.type()) ? x : x.convert(dtype::f64); }

/// The attributes of a convolution of input 0 with weight input 1.
op::convolution read_convolution(const node_context& c);

}  // namespace kiln::onnx
