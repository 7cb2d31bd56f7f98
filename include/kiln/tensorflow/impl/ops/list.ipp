#include "kiln/tensorflow/impl/ops/list.hpp"

#include "kiln/onnx/impl/ops/dynamic_axes.hpp"

// Lists of tensors of one shape: TensorList of TensorFlow 2, TensorArray of TensorFlow 1, whose handle is not used: the
// flow is the list.
namespace kiln::tensorflow {

variable reserved_list(value count, value extents, dtype type) {
  variable v = variable::sequence({extents});
  v.tensor = count;
  v.item = {type, onnx::item_type::none};
  return v;
}
bool is_reserved(const variable& v) { return v.is_sequence && v.tensor; }
dimension reserved_count(const node_context& c, const variable& list) {
  return c.dimensions_of(list.tensor.reshape({1}), "the number of items", 0)[0];
}

namespace {

const literal* known_extents(const node_context& c, const variable& list) {
  const auto& producer = c.build.module().producer(list.items[0].id());
  return producer.kind == instruction_kind::literal && list.items[0].rank() == 1 ? &producer.constant : nullptr;
}
bool is_open(dimension d) { return d.is_constant() && d.value() < 0; }

dims joined(dimension first, const dims& rest) {
  dims out{first};
  for (const dimension d : rest) out.push_back(d);
  return out;
}

}  // namespace

std::optional<dims> reserved_item(const node_context& c, const variable& list) {
  dims out;
  if (const literal* const known = known_extents(c, list)) {
    for (const dimension d : known->to<dimension>()) out.push_back(is_open(d) ? c.fresh_dims(1, "item")[0] : d);
    return out;
  }
  const value extents = list.items[0];
  if (extents.rank() != 1 || !extents.dim(0).is_constant() ||
      extents.dim(0).value() >= static_cast<std::int64_t>(max_rank))
    return std::nullopt;
  return c.fresh_dims(static_cast<std::size_t>(extents.dim(0).value()), "item");
}
bool is_item_known(const node_context& c, const variable& list) {
  const literal* const known = known_extents(c, list);
  if (!known) return false;
  for (const dimension d : known->to<dimension>())
    if (is_open(d)) return false;
  return true;
}
value allocated(const node_context& c, const variable& list, const dims& item) {
  return c.build.scalar(list.item.type, 0).broadcast_to(joined(reserved_count(c, list), item));
}

namespace {

// The list of input i. One that has got no item yet is of zeros, if their extents are known.
value list_in(const node_context& c, std::size_t i) {
  if (!c.has(i) || !is_reserved(c.inputs[i])) return c.in(i);
  if (!is_item_known(c, c.inputs[i]))
    c.unsupported("input " + std::to_string(i) + " is a list whose items have unknown extents, and has got no item");
  return allocated(c, c.inputs[i], *reserved_item(c, c.inputs[i]));
}

variables reserved(node_context& c, std::size_t extents, std::size_t count) {
  const value n = c.in(count);
  if (n.rank() != 0) c.malformed("the number of items is one number");
  return {reserved_list(n, c.in(extents).convert(dtype::i64), c.type_attribute("element_dtype", dtype::f32))};
}
variables import_reserve(node_context& c) { return reserved(c, 0, 1); }
variables import_empty(node_context& c) {
  return {reserved_list(c.build.scalar(dtype::i32, 0), c.in(0).convert(dtype::i64),
                        c.type_attribute("element_dtype", dtype::f32))};
}
// Outputs: handle and flow.
variables import_array(node_context& c) {
  require(c, "dtype");
  const onnx::attribute* const extents = c.find("element_shape");
  value known = c.build.scalar(dtype::i64, -1);
  if (extents && extents->kind == onnx::attribute_kind::integers) known = list_of(c, extents->integers);
  const variable list = reserved_list(c.in(0), known, c.type_attribute("dtype", dtype::f32));
  return {list, list};
}

// The list with an item at an index. The extents of items are those of this one, which a run checks.
value with_item(const node_context& c, std::size_t list, value index, value item) {
  dims lens = item.get_shape().lens;
  value all;
  if (c.has(list) && is_reserved(c.inputs[list])) {
    all = allocated(c, c.inputs[list], lens);
  } else {
    all = c.in(list);
    if (all.rank() != item.rank() + 1)
      c.malformed("the list is " + kiln::to_string(all.get_shape()) + ", the item " +
                  kiln::to_string(item.get_shape()));
    lens = joined(all.dim(0), lens);
    if (!(lens == all.get_shape().lens)) all = all.expect_dims(lens);
  }
  if (all.type() != item.type())
    c.malformed("the list is " + kiln::to_string(all.get_shape()) + ", the item " + kiln::to_string(item.get_shape()));
  if (index.rank() != 0) c.malformed("the index is one number");
  return c.build.add(op::scatter_nd{}, all, index.convert(dtype::i64).reshape({1, 1}), item.unsqueeze({0}));
}
variables import_set(node_context& c) { return {with_item(c, 0, c.in(1), c.in(2))}; }
variables import_write(node_context& c) { return {with_item(c, 3, c.in(1), c.in(2))}; }

variables import_get(node_context& c) { return {list_in(c, 0).gather(c.in(1), 0)}; }
variables import_read(node_context& c) { return {list_in(c, 2).gather(c.in(1), 0)}; }
variables import_whole(node_context& c) { return {list_in(c, 0)}; }

// Items by a list of indices, which often is all of them in their order.
value items_at(const node_context& c, value list, std::size_t indices) {
  const literal* const known = c.constant(indices);
  if (known && !known->has_symbols() && list.dim(0) == dimension(static_cast<std::int64_t>(known->elements()))) {
    bool is_all = true;
    const auto numbers = known->to<std::int64_t>();
    for (std::size_t i = 0; i < numbers.size(); ++i) is_all = is_all && numbers[i] == static_cast<std::int64_t>(i);
    if (is_all) return list;
  }
  return list.gather(c.in(indices), 0);
}
variables import_gather(node_context& c) { return {items_at(c, list_in(c, 0), 1)}; }
variables import_array_gather(node_context& c) { return {items_at(c, list_in(c, 2), 1)}; }

// handle, indices, values, flow
variables import_array_scatter(node_context& c) {
  const value values = c.in(2), indices = c.in(1);
  if (values.rank() == 0) c.malformed("the values are a tensor of items");
  if (!c.has(3) || !is_reserved(c.inputs[3]))
    return {c.build.add(op::scatter_nd{}, c.in(3), indices.convert(dtype::i64).unsqueeze({1}), values)};
  // all items in their order, as TensorArray.unstack writes them
  if (const literal* const known = c.constant(1);
      known && same(reserved_count(c, c.inputs[3]), values.dim(0)).value_or(false)) {
    bool is_all = true;
    const auto numbers = known->to<dimension>();
    for (std::size_t i = 0; i < numbers.size(); ++i)
      is_all = is_all && numbers[i] == dimension(static_cast<std::int64_t>(i));
    if (is_all) return {values};
  }
  dims item = values.get_shape().lens;
  item.erase(std::size_t{0});
  return {c.build.add(op::scatter_nd{}, allocated(c, c.inputs[3], item), indices.convert(dtype::i64).unsqueeze({1}),
                      values)};
}

value count_of(node_context& c, std::size_t i) {
  if (c.has(i) && is_reserved(c.inputs[i])) return c.inputs[i].tensor;
  return c.build.constant(literal::of_dimensions({}, {c.in(i).dim(0)}, dtype::i32));
}
variables import_length(node_context& c) { return {count_of(c, 0)}; }
variables import_array_size(node_context& c) { return {count_of(c, 1)}; }

variables import_push(node_context& c) {
  const value item = c.in(1).unsqueeze({0});
  if (c.has(0) && is_reserved(c.inputs[0])) {
    if (!(reserved_count(c, c.inputs[0]) == dimension(0))) return {onnx::concatenated(c, 0, {list_in(c, 0), item})};
    return {item};
  }
  return {onnx::concatenated(c, 0, {c.in(0), item})};
}
variables import_pop(node_context& c) {
  const value list = list_in(c, 0);
  const dimension n = list.dim(0);
  if (!n.is_constant() || n.value() < 1)
    c.unsupported("takes the last item of a list of " + kiln::to_string(n) + " items");
  return {list.slice({.axes = {0}, .starts = {0}, .ends = {n.value() - 1}}), onnx::element_at(list, 0, n.value() - 1)};
}

// Items joined along their first dim, and the extent of each there.
value lengths_of(node_context& c, value list) {
  const value extent = c.build.constant(literal::of_dimensions({1}, {list.dim(1)}, dtype::i64));
  return extent.broadcast_to({list.dim(0)});
}
variables joined_items(node_context& c, value list) {
  if (list.rank() < 2) c.malformed("scalars are not concatenated");
  dims lens = list.get_shape().lens;
  lens[1] = lens[0] * lens[1];
  lens.erase(std::size_t{0});
  variables out{list.reshape(lens)};
  if (c.wants(1)) out.push_back(lengths_of(c, list));
  return out;
}
variables import_concat(node_context& c) { return joined_items(c, list_in(c, 0)); }
variables import_array_concat(node_context& c) { return joined_items(c, list_in(c, 2)); }

// A tensor in parts of one length along its first dim.
value equal_parts(node_context& c, value x, std::size_t lengths) {
  const auto numbers = c.numbers(lengths, "the lengths");
  if (x.rank() == 0) c.malformed("a scalar has no parts");
  for (const std::int64_t n : numbers)
    if (n != numbers[0]) c.unsupported("parts of several lengths: items of a list have one shape");
  dims lens{static_cast<std::int64_t>(numbers.size())};
  lens.push_back(numbers.empty() ? 0 : numbers[0]);
  for (std::size_t d = 1; d < x.rank(); ++d) lens.push_back(x.dim(static_cast<std::int64_t>(d)));
  return x.reshape(lens);
}
variables import_split(node_context& c) { return {equal_parts(c, c.in(0), 2)}; }
variables import_array_split(node_context& c) { return {equal_parts(c, c.in(1), 2)}; }

}  // namespace

op_importer_table list_importers() {
  static constexpr std::string_view fixed = "items of one shape";
  static constexpr op_importer table[] = {
      {domain, "EmptyTensorList", 1, import_empty, fixed},
      {domain, "TensorArrayConcatV3", 1, import_array_concat, fixed},
      {domain, "TensorArrayGatherV3", 1, import_array_gather, fixed},
      {domain, "TensorArrayReadV3", 1, import_read, fixed},
      {domain, "TensorArrayScatterV3", 1, import_array_scatter, fixed},
      {domain, "TensorArraySizeV3", 1, import_array_size, fixed},
      {domain, "TensorArraySplitV3", 1, import_array_split, fixed},
      {domain, "TensorArrayV3", 1, import_array, fixed},
      {domain, "TensorArrayWriteV3", 1, import_write, fixed},
      {domain, "TensorListConcat", 1, import_concat, fixed},
      {domain, "TensorListConcatV2", 1, import_concat, fixed},
      {domain, "TensorListFromTensor", 1, import_whole, fixed},
      {domain, "TensorListGather", 1, import_gather, fixed},
      {domain, "TensorListGetItem", 1, import_get, fixed},
      {domain, "TensorListLength", 1, import_length, fixed},
      {domain, "TensorListPopBack", 1, import_pop, fixed},
      {domain, "TensorListPushBack", 1, import_push, fixed},
      {domain, "TensorListReserve", 1, import_reserve, fixed},
      {domain, "TensorListSetItem", 1, import_set, fixed},
      {domain, "TensorListSplit", 1, import_split, fixed},
      {domain, "TensorListStack", 1, import_whole, fixed},
  };
  return table;
}

}  // namespace kiln::tensorflow
