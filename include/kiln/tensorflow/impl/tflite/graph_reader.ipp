#include "kiln/tensorflow/impl/tflite/graph_reader.hpp"

#include <algorithm>
#include <array>

#include "kiln/tensorflow/impl/tflite/numbers.hpp"

// A subgraph's tensors and operators as values and nodes.
namespace kiln::tensorflow {

namespace {

using onnx::attribute, onnx::attribute_kind, onnx::element;

constexpr int most_depth = 32;

const parts::SubGraph& subgraph_of(const parts::Model& model, std::int64_t index) {
  if (index < 0 || index >= static_cast<std::int64_t>(count_of(model.subgraphs())))
    raise(errc::malformed, "the file has no subgraph " + std::to_string(index) + ", it has " +
                               std::to_string(count_of(model.subgraphs())));
  return *model.subgraphs()->Get(static_cast<flatbuffers::uoffset_t>(index));
}

// The reals of a constant, which are those of a vector where it has a scale for each element.
onnx::tensor reals_of(const onnx::tensor& stored, const quantization& q, std::string name) {
  const dims& lens = stored.value.get_shape().lens;
  std::vector<double> out;
  std::int64_t inner = 1;
  for (std::size_t d = static_cast<std::size_t>(q.axis) + 1; d < lens.size(); ++d) inner *= lens[d].value();
  std::int64_t i = 0;
  for (const std::int64_t n : stored.value.to<std::int64_t>()) {
    const auto k = static_cast<std::size_t>(i++ / inner) % q.scales.size();
    out.push_back(static_cast<double>(n - q.zeros[k]) * static_cast<double>(q.scales[k]));
  }
  return constant_of(std::move(name), dtype::f32, lens, out);
}

}  // namespace

graph_reader::graph_reader(file_reading& all, std::int64_t index, std::string prefix, std::vector<std::string> named,
                           int depth)
    : all_(all),
      index_(index),
      prefix_(std::move(prefix)),
      named_(std::move(named)),
      depth_(depth),
      source_(subgraph_of(all.model, index)) {
  if (depth > most_depth) raise(errc::limit, "subgraphs call each other deeper than " + std::to_string(most_depth));
  names_.resize(count_of(source_.tensors()));
  is_made_.resize(names_.size());
}

void graph_reader::rename(std::size_t index, std::string name) {
  if (index >= names_.size()) refuse_part("signature", "it names tensor " + std::to_string(index));
  if (!names_[index].empty()) return;  // of two names of an input the first
  if (!all_.names.insert(name).second) refuse_part("signature", "it has the name '" + name + "' twice");
  names_[index] = std::move(name);
}

void graph_reader::name_output(std::size_t index, std::string name) {
  if (index >= names_.size()) refuse_part("signature", "it names tensor " + std::to_string(index));
  if (names_[index].empty())
    rename(index, name);
  else if (names_[index] != name && !all_.names.insert(name).second)
    refuse_part("signature", "it has the name '" + name + "' twice");
  output_names_.emplace_back(static_cast<std::int64_t>(index), std::move(name));
}

void file_reading::charge(std::size_t n) {
  if (n > bytes_left) raise(errc::limit, "names, options and scales of the file are used too often for its size");
  bytes_left -= n;
}

std::string graph_reader::unique(std::string wanted) {
  all_.charge(wanted.size());
  std::string name = wanted;
  if (all_.names.insert(name).second) return name;
  int& k = all_.next_suffix[wanted];
  do {
    name = wanted + "_" + std::to_string(++k);
  } while (!all_.names.insert(name).second);
  return name;
}

std::vector<attribute> graph_reader::options_of(const called& c) {
  std::vector<attribute> out = read_options(c.op, c.type, c.where);
  for (const attribute& a : out)
    all_.charge(32 + a.name.size() + a.text.size() + 8 * (a.integers.size() + a.reals.size()));
  return out;
}

// A constant, of which strings and packed numbers are copied.
onnx::tensor graph_reader::constant(const parts::Tensor& t, const std::string& name) {
  onnx::tensor out = read_constant(all_.model, t, name, all_.bytes);
  if (!out.fault.empty()) return out;
  const std::byte* const at = out.value.data().data();
  const bool is_shared = at >= all_.bytes.data() && at < all_.bytes.data() + all_.bytes.size();
  if (!is_shared) all_.charge(64 + static_cast<std::size_t>(out.value.elements()));
  if (out.value.get_shape().type == dtype::string && t.buffer() < count_of(all_.model.buffers()))
    all_.charge(count_of(all_.model.buffers()->Get(t.buffer())->data()));
  return out;
}

quantization graph_reader::quantization_at(std::int64_t index, const std::string& where) {
  const parts::Tensor& t = tensor(index, where);
  all_.charge(16);
  if (const parts::Quantization* const q = t.quantization()) all_.charge(12 * count_of(q->scale()));
  return quantization_of(t, "tensor '" + names_[static_cast<std::size_t>(index)] + "'");
}

void graph_reader::name_tensors() {
  if (depth_ > 0) take(1 + names_.size() + count_of(source_.operators()));
  const std::size_t given = named_.size(), inputs = count_of(source_.inputs());
  if (given > inputs)
    refuse_part(prefix_, "it gives " + std::to_string(given) + " values to a subgraph of " + std::to_string(inputs));
  for (std::size_t i = 0; i < given; ++i) {
    const auto at = static_cast<std::size_t>(source_.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i)));
    if (at >= names_.size()) refuse_part(prefix_, "the subgraph has no tensor " + std::to_string(at));
    names_[at] = named_[i];
  }
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!names_[i].empty()) continue;
    const std::string own = text_of(source_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(i))->name());
    names_[i] = unique(prefix_ + (own.empty() ? "tensor_" + std::to_string(i) : own));
  }
}

const parts::Tensor& graph_reader::tensor(std::int64_t index, const std::string& where) const {
  if (index < 0 || index >= static_cast<std::int64_t>(names_.size()))
    refuse_part(where, "there is no tensor " + std::to_string(index) + " among " + std::to_string(names_.size()));
  return *source_.tensors()->Get(static_cast<flatbuffers::uoffset_t>(index));
}

// A tensor's numbers as the file has them.
std::string graph_reader::held(std::int64_t index, const std::string& where) {
  const parts::Tensor& t = tensor(index, where);
  const std::string& name = names_[static_cast<std::size_t>(index)];
  all_.charge(16 + name.size() + 4 * count_of(t.shape()));
  if (!is_made_[static_cast<std::size_t>(index)] && is_constant(all_.model, t) && read_constants_.insert(index).second)
    graph_.initializers.push_back(constant(t, name));
  return name;
}

onnx::value_info graph_reader::declared(std::int64_t index, const std::string& where) {
  const parts::Tensor& t = tensor(index, where);
  all_.charge(64 * (1 + count_of(t.shape())));
  onnx::value_info v;
  v.name = names_[static_cast<std::size_t>(index)];
  v.kind = onnx::value_kind::tensor;
  v.type = element_of(t.type());
  v.has_rank = true;
  const auto* const open = t.shape_signature();
  const auto* const extents = count_of(open) == count_of(t.shape()) && open ? open : t.shape();
  for (std::size_t d = 0; d < count_of(extents); ++d) {
    const std::int64_t n = extents->Get(static_cast<flatbuffers::uoffset_t>(d));
    v.dims.push_back({n < 0 ? -1 : n, {}});
  }
  return v;
}

void graph_reader::take(std::size_t n) {
  if (n > all_.left) raise(errc::limit, "calls of subgraphs add too many nodes and tensors");
  all_.left -= n;
}
void graph_reader::add_node(onnx::node n) {
  if (depth_ > 0) take(1);
  graph_.nodes.push_back(std::move(n));
}
void graph_reader::add_simple(std::string_view type, std::vector<std::string> inputs, std::vector<std::string> outputs,
                              std::vector<attribute> attributes) {
  if (outputs.empty())
    refuse_part("subgraph " + std::to_string(index_),
                "an operator that becomes ONNX's " + std::string(type) + " has no output");
  onnx::node n;
  n.op_type = type;
  n.name = outputs.front();
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  n.attributes = std::move(attributes);
  add_node(std::move(n));
}

// Scale and zero point as the last two inputs of DequantizeLinear or QuantizeLinear.
void graph_reader::add_scale(onnx::node& n, std::int64_t index, const quantization& q) {
  const parts::Tensor& t = tensor(index, n.name);
  const dtype type = *to_dtype(element_of(t.type()));
  const std::string& name = names_[static_cast<std::size_t>(index)];
  dims lens;
  if (q.scales.size() > 1) lens.push_back(static_cast<std::int64_t>(q.scales.size()));
  const auto [low, high] = range_of(type);
  for (const std::int64_t z : q.zeros)
    if (z < low || z > high)
      refuse_part("tensor '" + name + "'", "zero point " + std::to_string(z) + " is no number of its type");
  graph_.initializers.push_back(constant_of(unique(name + "/scale"), dtype::f32, lens, q.scales));
  n.inputs.push_back(graph_.initializers.back().name);
  graph_.initializers.push_back(constant_of(unique(name + "/zero_point"), type, lens, q.zeros));
  n.inputs.push_back(graph_.initializers.back().name);
  n.attributes = {number_attribute("axis", q.axis)};
}

// The reals that a tensor's numbers stand for.
std::string graph_reader::real(std::int64_t index, const std::string& where) {
  const std::string numbers = held(index, where);
  const parts::Tensor& t = tensor(index, where);
  if (const auto known = reals_.find(index); known != reals_.end()) return known->second;
  const quantization q = quantization_at(index, where);
  if (!q || !is_quantized_type(t.type())) return numbers;
  std::string& made = reals_[index];
  if (t.type() == parts::TensorType::INT64) {  // a bias, beyond what a float counts exactly
    if (!is_constant(all_.model, t))
      raise(errc::unsupported, "tensor '" + numbers + "' of INT64 is quantized and no constant");
    const onnx::tensor stored = constant(t, numbers);
    if (!stored.fault.empty()) return made = numbers;
    all_.charge(4 * static_cast<std::size_t>(stored.value.elements()));
    made = unique(numbers + "/real");
    graph_.initializers.push_back(reals_of(stored, q, made));
    return made;
  }
  onnx::node n;
  n.op_type = "DequantizeLinear";
  n.name = unique(numbers + "/real");
  n.inputs = {numbers};
  n.outputs = {n.name};
  add_scale(n, index, q);
  made = n.name;
  add_node(std::move(n));
  return made;
}

// The name under which an operator defines the reals of a quantized output.
std::string graph_reader::define_real(std::int64_t index, const quantization& q) {
  onnx::node n;
  n.op_type = "QuantizeLinear";
  n.name = names_[static_cast<std::size_t>(index)];
  n.inputs = {unique(n.name + "/exact")};
  n.outputs = {n.name};
  std::string exact = n.inputs[0];
  add_scale(n, index, q);
  add_node(std::move(n));
  return exact;
}

// Whether an operator moves numbers that mean the same before and after it, so that it needs no reals. What it moves is
// of its first output's type; other inputs are indices and extents.
bool graph_reader::passes_numbers(const called& c) {
  if (needs_no_reals(c.type)) return true;
  if (!moves_elements(c.type)) return false;
  if (count_of(c.op.outputs()) == 0 || c.op.outputs()->Get(0) < 0) return false;
  const parts::TensorType moved = tensor(c.op.outputs()->Get(0), c.where).type();
  const quantization first = quantization_at(c.op.outputs()->Get(0), c.where);
  if (first.scales.size() > 1) return false;
  for (const auto* list : {c.op.inputs(), c.op.outputs()})
    for (std::size_t i = 0; i < count_of(list); ++i) {
      const std::int64_t index = list->Get(static_cast<flatbuffers::uoffset_t>(i));
      if (index < 0) continue;
      const parts::TensorType type = tensor(index, c.where).type();
      if (!is_quantized_type(type)) continue;
      const quantization q = quantization_at(index, c.where);
      if (type == moved ? !(q == first) : static_cast<bool>(q)) return false;
    }
  for (const attribute& a : options_of(c))
    if (a.name == "fused_activation_function" && a.integer != 0) return false;
  return true;
}

void graph_reader::add_computation(const called& c) {
  onnx::node n;
  n.domain = tflite_domain;
  n.op_type = c.type;
  n.attributes = options_of(c);
  const bool passes = passes_numbers(c);
  for (std::size_t i = 0; i < count_of(c.op.inputs()); ++i) {
    const std::int64_t index = c.op.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
    if (index == -1) {
      n.inputs.emplace_back();
      continue;
    }
    const parts::Tensor& t = tensor(index, c.where);
    if (t.is_variable() && !is_made_[static_cast<std::size_t>(index)]) {
      const std::string& name = names_[static_cast<std::size_t>(index)];
      if (all_.states.insert(&t).second)
        all_.remarks.push_back("variable tensor '" + name + "' is of zeros when a run begins");
      n.inputs.emplace_back();
    } else {
      n.inputs.push_back(passes ? held(index, c.where) : real(index, c.where));
    }
  }
  attribute types;
  types.name = "output_types";
  types.kind = attribute_kind::integers;
  for (std::size_t k = 0; k < count_of(c.op.outputs()); ++k) {
    const std::int64_t index = c.op.outputs()->Get(static_cast<flatbuffers::uoffset_t>(k));
    if (index == -1) {
      n.outputs.emplace_back();
      types.integers.push_back(0);
      continue;
    }
    const parts::Tensor& t = tensor(index, c.where);
    const std::string& name = names_[static_cast<std::size_t>(index)];
    if (k == 0) n.name = name;
    all_.charge(name.size());
    const quantization q = quantization_at(index, c.where);
    const bool quantizes = q && is_quantized_type(t.type()) && !passes;
    types.integers.push_back(static_cast<std::int64_t>(quantizes ? element::f32 : element_of(t.type())));
    n.outputs.push_back(quantizes ? define_real(index, q) : name);
  }
  n.attributes.push_back(std::move(types));
  add_node(std::move(n));
}

void graph_reader::add_operator(std::size_t index) {
  const parts::Operator& op = *source_.operators()->Get(static_cast<flatbuffers::uoffset_t>(index));
  std::string where = "operator " + std::to_string(index) + " of subgraph " + std::to_string(index_);
  if (op.opcode_index() >= count_of(all_.model.operator_codes()))
    refuse_part(where, "there is no operator code " + std::to_string(op.opcode_index()));
  const std::string type = operator_name(*all_.model.operator_codes()->Get(op.opcode_index()));
  all_.charge(64 + type.size());
  where += " (" + type + ")";
  for (std::size_t k = 0; k < count_of(op.outputs()); ++k) {
    const std::int64_t made = op.outputs()->Get(static_cast<flatbuffers::uoffset_t>(k));
    if (made == -1) continue;
    static_cast<void>(tensor(made, where));
    if (is_made_[static_cast<std::size_t>(made)])
      refuse_part(where, "tensor '" + names_[static_cast<std::size_t>(made)] + "' has a value already");
    is_made_[static_cast<std::size_t>(made)] = true;
  }
  const called c{type, where, op};
  if (!add_call(c) && !add_variable(c)) add_computation(c);
}

std::vector<onnx::value_info> graph_reader::read_inputs() {
  name_tensors();
  const std::string where = "subgraph " + std::to_string(index_);
  std::vector<onnx::value_info> out;
  for (std::size_t i = 0; i < count_of(source_.inputs()); ++i) {
    const std::int64_t index = source_.inputs()->Get(static_cast<flatbuffers::uoffset_t>(i));
    out.push_back(declared(index, where));
    is_made_[static_cast<std::size_t>(index)] = true;
  }
  return out;
}

onnx::graph graph_reader::read() {
  graph_.name = text_of(source_.name());
  if (graph_.name.empty()) graph_.name = "main";
  std::vector<onnx::value_info> inputs = read_inputs();
  for (std::size_t i = named_.size(); i < inputs.size(); ++i) graph_.inputs.push_back(std::move(inputs[i]));
  for (std::size_t i = 0; i < count_of(source_.operators()); ++i) add_operator(i);
  given_.insert(named_.begin(), named_.end());
  const std::string where = "subgraph " + std::to_string(index_);
  // what a signature calls each of the outputs; further names of one follow
  std::unordered_map<std::int64_t, std::vector<std::size_t>> named;
  for (std::size_t i = output_names_.size(); i-- > 0;) named[output_names_[i].first].push_back(i);
  std::vector<bool> is_listed(output_names_.size());
  for (std::size_t k = 0; k < count_of(source_.outputs()); ++k) {
    const std::int64_t index = source_.outputs()->Get(static_cast<flatbuffers::uoffset_t>(k));
    const auto found = named.find(index);
    if (found == named.end() || found->second.empty()) {
      add_output(index, held(index, where), where);
      continue;
    }
    add_output(index, output_names_[found->second.back()].second, where);
    is_listed[found->second.back()] = true;
    found->second.pop_back();
  }
  for (std::size_t i = 0; i < output_names_.size(); ++i)
    if (!is_listed[i]) add_output(output_names_[i].first, output_names_[i].second, where);
  return std::move(graph_);
}

// A body gives values of its own, and each output is one.
void graph_reader::add_output(std::int64_t index, const std::string& wanted, const std::string& where) {
  const std::string name = held(index, where);
  onnx::value_info v = declared(index, where);
  if (wanted != name)
    v.name = wanted;
  else if (!listed_.insert(name).second || (depth_ > 0 && (read_constants_.contains(index) || given_.contains(name))))
    v.name = unique(name + "/output");
  if (v.name != name) add_simple("Identity", {name}, {v.name});
  graph_.outputs.push_back(std::move(v));
}

}  // namespace kiln::tensorflow
