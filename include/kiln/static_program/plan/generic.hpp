#pragma once
#include "kiln/meta/type_list.hpp"
#include "kiln/op/index/gather.hpp"
#include "kiln/op/nn/attention.hpp"
#include "kiln/op/nn/lrn.hpp"
#include "kiln/op/nn/pooling.hpp"
#include "kiln/static_program/plan/attention.hpp"

namespace kiln::aot {

/// Generic ops that a step of their own may serve. The others run by their reference computation.
using stepped_ops = type_list<op::pooling, op::gather, op::attention, op::lrn>;

/// Whether a step of its own serves an op whose first operand has this dtype.
template <class Op> constexpr bool has_own_step(dtype t) {
  constexpr bool of_floats = std::is_same_v<Op, op::attention> || std::is_same_v<Op, op::lrn>;
  return index_of<Op>(stepped_ops{}) < stepped_ops::size && (!of_floats || t == dtype::f32);
}
template <class Operation, class... Ops> constexpr bool any_own_step(const Operation& op, dtype t, type_list<Ops...>) {
  return ((op.template is<Ops>() && has_own_step<Ops>(t)) || ...);
}

/// Whether a reference computation reads or writes an operand where it lies: row-major, in its own compute type.
/// Indices of u64 are asked for as i64.
constexpr bool lies_as_computed(const place& p) {
  if (p.type != dtype::f32 && p.type != dtype::f64 && p.type != dtype::i64 && p.type != dtype::boolean) return false;
  std::int64_t step = 1;
  for (std::size_t d = p.lens.size(); d-- > 0; step *= p.lens[d])
    if (p.lens[d] != 1 && p.strides[d] != step) return false;
  return true;
}

/// Bytes for the other form of an operand: any compute type takes at most eight an element.
constexpr std::int64_t converted_bytes(const place& p) {
  return lies_as_computed(p) ? 0 : (product(p.lens) * 8 + 63) / 64 * 64;
}

/// Bytes for the other forms of several operands, which lie after each other.
constexpr std::int64_t converted_bytes(std::span<const place> list) {
  std::int64_t bytes = 0;
  for (const place& p : list) bytes += converted_bytes(p);
  return bytes;
}

/// Bytes of memory of its own that a step of a generic op needs.
template <class Operation>
constexpr std::int64_t generic_bytes(const Operation& op, std::span<const place> in, std::span<const place> out) {
  if (in.empty() || !any_own_step(op, in[0].type, stepped_ops{})) return converted_bytes(in) + converted_bytes(out);
  return op.template is<op::attention>() ? plan_attention(in[0], in[1], in[2], out[0], false).memory() * 4 : 0;
}

}  // namespace kiln::aot
