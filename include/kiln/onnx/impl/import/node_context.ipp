#include "kiln/onnx/op_importer.hpp"
#include "kiln/op/dynamic/sequence.hpp"

namespace kiln::onnx {

namespace {

std::string_view kind_name(attribute_kind k) {
  constexpr std::string_view names[] = {"nothing", "a float", "an int",  "a string", "a tensor", "a graph",
                                        "floats",  "ints",    "strings", "tensors",  "graphs",   "another type"};
  return names[static_cast<unsigned>(k)];
}

// The program's inputs that a value is computed from.
std::string inputs_of(const module_graph& m, value_id v) {
  small_vector<std::uint8_t> seen(m.size(), 0);
  small_vector<std::uint32_t> left{v.instruction};
  std::string names;
  seen[v.instruction] = 1;
  while (!left.empty()) {
    const auto& i = m[left.back()];
    left.pop_back();
    if (i.kind == instruction_kind::parameter)
      names.append(names.empty() ? "'" : ", '").append(std::string_view(i.name)).append("'");
    for (const value_id in : i.inputs)
      if (!seen[in.instruction]) seen[in.instruction] = 1, left.push_back(in.instruction);
  }
  return names;
}

}  // namespace

void node_context::unsupported(std::string why) const { raise(errc::unsupported, std::move(why)); }
void node_context::malformed(std::string why) const { raise(errc::malformed, std::move(why)); }

value node_context::in(std::size_t i) const {
  if (!has(i)) malformed("input " + std::to_string(i) + " is missing");
  if (inputs[i].is_sequence) malformed("input " + std::to_string(i) + " is a sequence, not a tensor");
  if (inputs[i].is_empty) malformed("input " + std::to_string(i) + " is an empty optional, not a tensor");
  if (const shapes& types = inputs[i].possible_types; !types.empty())
    unsupported("input " + std::to_string(i) + " is " + kiln::to_string(types[0]) + " or " + kiln::to_string(types[1]) +
                ", and only a run knows which");
  return inputs[i].tensor;
}

const small_vector<value>& node_context::sequence(std::size_t i) const {
  if (!has(i)) malformed("input " + std::to_string(i) + " is missing");
  if (!inputs[i].is_sequence) malformed("input " + std::to_string(i) + " is a tensor, not a sequence");
  return inputs[i].items;
}

value node_context::sequence_value(std::size_t i) const {
  if (!has(i)) malformed("input " + std::to_string(i) + " is missing");
  if (inputs[i].is_sequence) return build.add(op::make_sequence{}, inputs[i].items);
  if (!inputs[i].tensor || inputs[i].tensor.type() != dtype::sequence)
    malformed("input " + std::to_string(i) + " is not a sequence");
  return inputs[i].tensor;
}

dims node_context::fresh_dims(std::size_t rank, std::string_view what) const {
  dims out;
  for (std::size_t d = 0; d < rank; ++d) out.push_back(bodies->fresh_symbol(std::string(what) + std::to_string(d)));
  return out;
}

const attribute* node_context::find(std::string_view name) const {
  for (const attribute& a : source.attributes)
    if (a.name == name && a.kind != attribute_kind::none) return &a;
  return nullptr;
}

const attribute* node_context::find(std::string_view name, attribute_kind kind) const {
  const attribute* a = find(name);
  if (a && a->kind != kind)
    malformed("attribute '" + std::string(name) + "' is " + std::string(kind_name(a->kind)) + ", not " +
              std::string(kind_name(kind)));
  return a;
}

std::int64_t node_context::integer(std::string_view name, std::int64_t otherwise) const {
  const attribute* a = find(name, attribute_kind::integer);
  return a ? a->integer : otherwise;
}
float node_context::real(std::string_view name, float otherwise) const {
  const attribute* a = find(name, attribute_kind::real);
  return a ? a->real : otherwise;
}
std::string_view node_context::text(std::string_view name, std::string_view otherwise) const {
  const attribute* a = find(name, attribute_kind::text);
  return a ? std::string_view(a->text) : otherwise;
}
std::string_view node_context::choice(std::string_view name, std::initializer_list<std::string_view> values) const {
  const std::string_view found = text(name, *values.begin());
  std::string all;
  for (const std::string_view v : values) {
    if (v == found) return found;
    all.append(all.empty() ? "" : v == values.end()[-1] ? " or " : ", ").append(v);
  }
  malformed(std::string(name) + " is '" + std::string(found) + "', not " + all);
}
dtype node_context::type_attribute(std::string_view name, dtype otherwise) const {
  const auto e = static_cast<element>(integer(name, 0));
  if (e == element::undefined) return otherwise;
  const auto type = to_dtype(e);
  if (!type) unsupported(std::string(name) + " is " + std::string(to_string(e)));
  return *type;
}
// protobuf writes an empty list of any type alike, so a list's kind may be missing
std::span<const std::int64_t> node_context::integers(std::string_view name) const {
  const attribute* a = find(name, attribute_kind::integers);
  return a ? std::span(a->integers) : std::span<const std::int64_t>();
}
std::span<const float> node_context::reals(std::string_view name) const {
  const attribute* a = find(name, attribute_kind::reals);
  return a ? std::span(a->reals) : std::span<const float>();
}
std::span<const std::string> node_context::texts(std::string_view name) const {
  const attribute* a = find(name, attribute_kind::texts);
  return a ? std::span(a->texts) : std::span<const std::string>();
}
const literal* node_context::tensor_attribute(std::string_view name) const {
  const attribute* a = find(name, attribute_kind::tensor);
  if (!a) return nullptr;
  if (a->tensors.empty()) malformed("attribute '" + std::string(name) + "' holds no tensor");
  if (!a->tensors[0].fault.empty()) unsupported("attribute '" + std::string(name) + "' " + a->tensors[0].fault);
  return &a->tensors[0].value;
}
const graph& node_context::body(std::string_view name) const {
  const attribute* a = find(name, attribute_kind::graph);
  if (!a || a->graphs.empty()) malformed("attribute '" + std::string(name) + "' is missing");
  return a->graphs[0];
}
const literal* node_context::constant(std::size_t i) const {
  if (!has(i) || !inputs[i].tensor) return nullptr;
  const auto& producer = build.module().producer(inputs[i].tensor.id());
  return producer.kind == instruction_kind::literal ? &producer.constant : nullptr;
}

bool node_context::is_dynamic(std::size_t i) const {
  const literal* l = constant(i);
  return has(i) && (!l || l->has_symbols());
}

small_vector<dimension> node_context::dimensions(std::size_t i, std::string_view what) const {
  const value v = in(i);
  if (!is_integer(v.type())) malformed(std::string(what) + " is an integer tensor, not " + to_string(v.get_shape()));
  const literal* known = constant(i);
  if (!known) {
    const std::string from = inputs_of(build.module(), v.id());
    unsupported(std::string(what) + " is only known in a run" + (from.empty() ? "" : ": it is computed from " + from));
  }
  return known->to<dimension>();
}

small_vector<std::int64_t> node_context::numbers(std::size_t i, std::string_view what) const {
  small_vector<std::int64_t> out;
  for (const dimension d : dimensions(i, what)) {
    if (!d.is_constant()) unsupported(std::string(what) + " is symbolic: " + kiln::to_string(d));
    out.push_back(d.value());
  }
  return out;
}

namespace {

template <class List> auto only_one(const node_context& c, const List& list, std::string_view what) {
  if (list.size() != 1) c.malformed(std::string(what) + " is one number");
  return list[0];
}

}  // namespace

std::int64_t node_context::number(std::size_t i, std::string_view what) const {
  return only_one(*this, numbers(i, what), what);
}
dimension node_context::extent(std::size_t i, std::string_view what) const {
  return only_one(*this, extents(i, what), what);
}

}  // namespace kiln::onnx
