#include "kiln/onnx/row.hpp"
#include "kiln/op/dynamic/sequence.hpp"

namespace kiln::onnx {

namespace {

std::string_view kind_name(attribute_kind k) {
  constexpr std::string_view names[] = {"nothing", "a float", "an int",  "a string", "a tensor", "a graph",
                                        "floats",  "ints",    "strings", "tensors",  "graphs",   "another type"};
  return names[static_cast<unsigned>(k)];
}

// The program's inputs that a value is computed from.
std::string inputs_behind(const module_graph& m, value_id v) {
  small_vector<std::uint8_t> seen(m.size(), 0);
  small_vector<std::uint32_t> open{v.instruction};
  std::string names;
  seen[v.instruction] = 1;
  while (!open.empty()) {
    const auto& i = m[open.back()];
    open.pop_back();
    if (i.kind == instruction_kind::parameter)
      names.append(names.empty() ? "'" : ", '").append(std::string_view(i.name)).append("'");
    for (const value_id in : i.inputs)
      if (!seen[in.instruction]) seen[in.instruction] = 1, open.push_back(in.instruction);
  }
  return names;
}

}  // namespace

void call::unsupported(std::string why) const { raise(errc::unsupported, std::move(why)); }
void call::malformed(std::string why) const { raise(errc::malformed, std::move(why)); }

value call::in(std::size_t i) const {
  if (!has(i)) malformed("input " + std::to_string(i) + " is missing");
  if (inputs[i].is_sequence) malformed("input " + std::to_string(i) + " is a sequence, not a tensor");
  if (inputs[i].is_empty) malformed("input " + std::to_string(i) + " is an empty optional, not a tensor");
  if (!inputs[i].either.empty())
    unsupported("input " + std::to_string(i) + " is " + kiln::to_string(inputs[i].either[0]) + " or " +
                kiln::to_string(inputs[i].either[1]) + ", and only a run knows which");
  return inputs[i].tensor;
}

const small_vector<value>& call::sequence(std::size_t i) const {
  if (!has(i)) malformed("input " + std::to_string(i) + " is missing");
  if (!inputs[i].is_sequence) malformed("input " + std::to_string(i) + " is a tensor, not a sequence");
  return inputs[i].items;
}

value call::sequence_value(std::size_t i) const {
  if (!has(i)) malformed("input " + std::to_string(i) + " is missing");
  if (inputs[i].is_sequence) return build.add(op::make_sequence{}, inputs[i].items);
  if (!inputs[i].tensor || inputs[i].tensor.type() != dtype::sequence)
    malformed("input " + std::to_string(i) + " is not a sequence");
  return inputs[i].tensor;
}

dims call::fresh_dims(std::size_t rank, std::string_view what) const {
  dims out;
  for (std::size_t d = 0; d < rank; ++d) out.push_back(bodies->fresh_symbol(std::string(what) + std::to_string(d)));
  return out;
}

const attribute* call::find(std::string_view name) const {
  for (const attribute& a : source.attributes)
    if (a.name == name && a.kind != attribute_kind::none) return &a;
  return nullptr;
}

const attribute* call::find(std::string_view name, attribute_kind kind) const {
  const attribute* a = find(name);
  if (a && a->kind != kind)
    malformed("attribute '" + std::string(name) + "' is " + std::string(kind_name(a->kind)) + ", not " +
              std::string(kind_name(kind)));
  return a;
}

std::int64_t call::integer(std::string_view name, std::int64_t otherwise) const {
  const attribute* a = find(name, attribute_kind::integer);
  return a ? a->integer : otherwise;
}
float call::real(std::string_view name, float otherwise) const {
  const attribute* a = find(name, attribute_kind::real);
  return a ? a->real : otherwise;
}
std::string_view call::text(std::string_view name, std::string_view otherwise) const {
  const attribute* a = find(name, attribute_kind::text);
  return a ? std::string_view(a->text) : otherwise;
}
// protobuf writes an empty list of any type alike, so a list's kind may be missing
std::span<const std::int64_t> call::integers(std::string_view name) const {
  const attribute* a = find(name, attribute_kind::integers);
  return a ? std::span<const std::int64_t>(a->integers) : std::span<const std::int64_t>();
}
std::span<const float> call::reals(std::string_view name) const {
  const attribute* a = find(name, attribute_kind::reals);
  return a ? std::span<const float>(a->reals) : std::span<const float>();
}
std::span<const std::string> call::texts(std::string_view name) const {
  const attribute* a = find(name, attribute_kind::texts);
  return a ? std::span<const std::string>(a->texts) : std::span<const std::string>();
}
const literal* call::tensor_attribute(std::string_view name) const {
  const attribute* a = find(name, attribute_kind::tensor);
  if (!a) return nullptr;
  if (a->tensors.empty()) malformed("attribute '" + std::string(name) + "' holds no tensor");
  if (!a->tensors[0].fault.empty()) unsupported("attribute '" + std::string(name) + "' " + a->tensors[0].fault);
  return &a->tensors[0].value;
}
const graph& call::body(std::string_view name) const {
  const attribute* a = find(name, attribute_kind::graph);
  if (!a || a->graphs.empty()) malformed("attribute '" + std::string(name) + "' is missing");
  return a->graphs[0];
}
ints call::short_integers(std::string_view name) const {
  const auto all = integers(name);
  return ints(all);
}

const literal* call::constant(std::size_t i) const {
  if (!has(i) || !inputs[i].tensor) return nullptr;
  const auto& producer = build.module().producer(inputs[i].tensor.id());
  return producer.kind == instruction_kind::literal ? &producer.constant : nullptr;
}

small_vector<dimension> call::dimensions(std::size_t i, std::string_view what) const {
  const value v = in(i);
  if (!is_integer(v.type())) malformed(std::string(what) + " is an integer tensor, not " + to_string(v.get_shape()));
  const literal* known = constant(i);
  if (!known) {
    const std::string from = inputs_behind(build.module(), v.id());
    unsupported(std::string(what) + " is only known in a run" + (from.empty() ? "" : ": it is computed from " + from));
  }
  return known->to<dimension>();
}

small_vector<std::int64_t> call::numbers(std::size_t i, std::string_view what) const {
  small_vector<std::int64_t> out;
  for (const dimension d : dimensions(i, what)) {
    if (!d.is_constant()) unsupported(std::string(what) + " is symbolic: " + kiln::to_string(d));
    out.push_back(d.value());
  }
  return out;
}

}  // namespace kiln::onnx
