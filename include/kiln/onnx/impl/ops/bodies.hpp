#pragma once
#include "kiln/onnx/impl/ops/common.hpp"
#include "kiln/op/dynamic/sequence.hpp"

// What operators with bodies, sequences and optionals share.
namespace kiln::onnx {

/// Whether values of the type contain other values.
constexpr bool is_container(dtype t) { return t == dtype::sequence || t == dtype::optional || t == dtype::map; }
/// What is known of items that have either type.
inline item_type joined(item_type a, item_type b) {
  if (a.rank == item_type::none) return b;
  if (b.rank == item_type::none || a == b) return a;
  return {a.type, item_type::any};
}
/// The same for items of one sequence, whose types must agree.
inline item_type joined_items(const node_context& c, item_type a, item_type b) {
  if (a.rank != item_type::none && b.rank != item_type::none && a.type != b.type)
    c.malformed("the items of a sequence have one type, found " + std::string(to_string(a.type)) + " and " +
                std::string(to_string(b.type)));
  return joined(a, b);
}
inline item_type item_of(value v) { return {v.type(), static_cast<int>(v.rank())}; }
/// What the items of a sequence are, known or not.
inline item_type items_of(const variable& v) {
  if (!v.is_sequence || v.items.empty()) return v.item;
  item_type all = item_of(v.items[0]);
  for (const value& i : v.items) all = joined(all, item_of(i));
  return all;
}
/// A sequence of known items, or an empty optional, as one value.
inline value as_value(builder& b, const variable& v) {
  if (v.is_sequence) return b.add(op::make_sequence{}, v.items);
  return v.is_empty ? b.add(op::make_optional{}, small_vector<value>{}) : v.tensor;
}
/// Input i as one value, with what is known of its items.
variable as_one_value(node_context& c, std::size_t i);
/// The rank, in an `item_type`, of a tensor carried through a loop whose rank changes: an optional holds it.
inline constexpr int changing_rank = -3;
/// The type of a tensor of any extents for each rank.
shapes every_rank(const node_context& c, dtype type);
/// The result of an op that takes a tensor from a sequence: `make(type)` is the op for a result of that type. A tensor
/// of unknown rank is in an optional.
template <class Make>
variable extracted_item(node_context& c, item_type item, const small_vector<value>& operands, Make&& make) {
  if (item.rank >= 0)
    return c.build.add(make(shape{item.type, c.fresh_dims(static_cast<std::size_t>(item.rank), "extent")}), operands);
  variable out = c.build.add(make(shape{dtype::optional, {}}), operands);
  out.possible_types = every_rank(c, item.type);
  return out;
}

/// Whether a dim of a body means the same outside: its symbols are those of values that the body is given.
bool known_outside(dimension d, const small_vector<value>& given);

/// The outputs of one of two bodies, by a condition. Extents that differ become symbols; results that differ in rank
/// are optionals with possible types.
variables join_bodies(node_context& c, value condition, body_module then_body, body_module else_body);

/// Runs a body as ONNX Loop does. The body may also read the `visible` values.
variables run_loop(node_context& c, const graph& body, value most, value condition, const variables& carried,
                   named_variables visible = {});

}  // namespace kiln::onnx
