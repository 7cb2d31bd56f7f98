#pragma once
#include "kiln/onnx/impl/parse.hpp"

// What operators with bodies and with sequences share.
namespace kiln::onnx {

/// Whether a value of the type holds others: it is no tensor.
constexpr bool is_holder(dtype t) { return t == dtype::sequence || t == dtype::optional || t == dtype::map; }
/// What holds for items of either type.
inline item_type joined(item_type a, item_type b) {
  if (a.rank == item_type::none) return b;
  if (b.rank == item_type::none || a == b) return a;
  return {a.type, item_type::any};
}
/// The same for items of one sequence, whose types must agree.
inline item_type joined_items(const call& c, item_type a, item_type b) {
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
/// Input i as one value, whatever it is, with what is known of its items.
variable as_one_value(call& c, std::size_t i);
/// The rank, in an `item_type`, of a carried tensor whose rank changes: it is handed on inside an optional.
inline constexpr int changing_rank = -3;
/// A tensor of one dtype as each rank has it.
shapes every_rank(const call& c, dtype type);
/// What an op gives that takes a tensor out of a sequence: `make(type)` is the op for a result of that type. Where the
/// rank is open that is an optional.
template <class Make>
variable taken_out(call& c, item_type item, const small_vector<value>& operands, Make&& make) {
  if (item.rank >= 0)
    return c.build.add(make(shape{item.type, c.fresh_dims(static_cast<std::size_t>(item.rank), "extent")}), operands);
  variable out = c.build.add(make(shape{dtype::optional, {}}), operands);
  out.either = every_rank(c, item.type);
  return out;
}

/// Whether a body's dim means the same around it: its symbols are those of values that the body is given.
bool known_outside(dimension d, const small_vector<value>& given);

/// What either of two bodies gives, by a condition. Extents that differ are the run's to tell; results that differ in
/// rank are optionals whose `either` says what they may hold.
variables join_bodies(call& c, value condition, body_module then_body, body_module else_body);

/// Runs a body as ONNX Loop does. `visible` names values it may read besides.
variables run_loop(call& c, const graph& body, value most, value condition, const variables& carried,
                   std::span<const std::pair<std::string, variable>> visible = {});

}  // namespace kiln::onnx
