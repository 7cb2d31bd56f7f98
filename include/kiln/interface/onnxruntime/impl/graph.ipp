#include "kiln/interface/onnxruntime/graph.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "kiln/core/mapped_file.hpp"
#include "kiln/onnx/tensor.hpp"

namespace kiln::onnxruntime {

namespace {

// ONNX Runtime's kinds of values that the importer tells apart.
onnx::value_kind kind_of(value_type type) {
  switch (type) {
    case value_type::tensor: return onnx::value_kind::tensor;
    case value_type::sequence: return onnx::value_kind::sequence;
    case value_type::map: return onnx::value_kind::map;
    case value_type::optional: return onnx::value_kind::optional;
    case value_type::sparse_tensor: return onnx::value_kind::sparse_tensor;
    default: return onnx::value_kind::unknown;
  }
}

std::string domain_of(const char* name) { return std::strcmp(name, "ai.onnx") == 0 ? "" : name; }

struct shape_of_value {
  onnx::element type;
  std::vector<std::int64_t> extents;
};

shape_of_value shape_of(const host& ort, const OrtValue* value) {
  const tensor_type found = ort.type_of(value);
  return {static_cast<onnx::element>(found.element), {found.extents.begin(), found.extents.end()}};
}

class graph_reader {
 public:
  graph_reader(const host& ort, tensor_memory memory) : ort_(ort), memory_(memory) {}

  onnx::graph read(const OrtGraph* from) {
    onnx::graph out;
    out.name = ort_.get<const char*>(api::graph_name, from);
    for (const OrtValueInfo* v : ort_.list<const OrtValueInfo*>(api::initializer_count, api::initializers, from))
      if (is_constant(v)) out.initializers.push_back(read_initializer(v));
    for (const OrtValueInfo* v : ort_.list<const OrtValueInfo*>(api::graph_input_count, api::graph_inputs, from))
      if (v && !is_constant(v)) out.inputs.push_back(read_value(ort_, v));
    for (const OrtValueInfo* v : ort_.list<const OrtValueInfo*>(api::graph_output_count, api::graph_outputs, from))
      if (v) out.outputs.push_back(read_value(ort_, v));
    for (const OrtNode* n : ort_.list<const OrtNode*>(api::node_count, api::nodes, from))
      out.nodes.push_back(read_node(n));
    return out;
  }

  onnx::node read_node(const OrtNode* from) {
    onnx::node n;
    n.name = ort_.get<const char*>(api::node_name, from);
    n.op_type = ort_.get<const char*>(api::node_operator, from);
    n.domain = domain_of(ort_.get<const char*>(api::node_domain, from));
    for (const OrtValueInfo* v : ort_.list<const OrtValueInfo*>(api::node_input_count, api::node_inputs, from))
      n.inputs.push_back(name_of(v));
    for (const OrtValueInfo* v : ort_.list<const OrtValueInfo*>(api::node_output_count, api::node_outputs, from))
      n.outputs.push_back(name_of(v));
    for (const OrtOpAttr* a : ort_.list<const OrtOpAttr*>(api::attribute_count, api::attributes, from))
      read_attribute(a, n.attributes);
    read_bodies(from, n.attributes);
    return n;
  }

  // A value that a node reads: an input or an initializer of its graph.
  void read_operand(const OrtValueInfo* v, onnx::graph& to) {
    if (is_constant(v))
      to.initializers.push_back(read_initializer(v));
    else
      to.inputs.push_back(read_value(ort_, v));
  }

 private:
  bool is_constant(const OrtValueInfo* v) { return ort_.get<bool>(api::is_constant, v); }

  std::string name_of(const OrtValueInfo* v) { return v ? ort_.get<const char*>(api::value_name, v) : ""; }

  void read_bodies(const OrtNode* from, std::vector<onnx::attribute>& to) {
    std::vector<const OrtGraph*> bodies(ort_.get<std::size_t>(api::body_count, from));
    std::vector<const char*> names(bodies.size());
    if (!bodies.empty()) ort_.call(api::bodies, from, bodies.data(), bodies.size(), names.data());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      onnx::attribute a;
      a.name = names[i];
      a.kind = onnx::attribute_kind::graph;
      a.graphs.push_back(read(bodies[i]));
      to.push_back(std::move(a));
    }
  }

  // Bytes of an attribute: a call without room tells how many there are.
  template <class T> std::vector<T> read_list(const OrtOpAttr* from, attribute_type type) {
    std::size_t bytes = 0;
    OrtStatus* const status = ort_.try_call(api::read_attribute, from, type, nullptr, 0, &bytes);
    if (status) ort_.call(api::release_status, status);
    std::vector<T> out((bytes + sizeof(T) - 1) / sizeof(T));
    if (!out.empty()) ort_.call(api::read_attribute, from, type, out.data(), bytes, &bytes);
    return out;
  }

  void read_attribute(const OrtOpAttr* from, std::vector<onnx::attribute>& to) {
    onnx::attribute a;
    a.name = ort_.get<const char*>(api::attribute_name, from);
    auto type = attribute_type::undefined;
    if (OrtStatus* const status = ort_.try_call(api::attribute_type_of, from, &type)) {
      ort_.call(api::release_status, status);  // a type (Optional's), which the interface does not show
      type = attribute_type::undefined;
    }
    std::size_t bytes = 0;
    switch (type) {
      case attribute_type::integer:
        a.kind = onnx::attribute_kind::integer;
        ort_.call(api::read_attribute, from, type, &a.integer, sizeof a.integer, &bytes);
        break;
      case attribute_type::real:
        a.kind = onnx::attribute_kind::real;
        ort_.call(api::read_attribute, from, type, &a.real, sizeof a.real, &bytes);
        break;
      case attribute_type::integers:
        a.kind = onnx::attribute_kind::integers;
        a.integers = read_list<std::int64_t>(from, type);
        break;
      case attribute_type::reals:
        a.kind = onnx::attribute_kind::reals;
        a.reals = read_list<float>(from, type);
        break;
      case attribute_type::text: {
        a.kind = onnx::attribute_kind::text;
        const std::vector<char> text = read_list<char>(from, type);
        a.text.assign(text.begin(), text.end());
        break;
      }
      case attribute_type::texts: {  // strings that end with a zero, one after the other
        a.kind = onnx::attribute_kind::texts;
        const std::vector<char> all = read_list<char>(from, type);
        for (auto at = all.begin(); at != all.end();) {
          const auto end = std::find(at, all.end(), '\0');
          a.texts.emplace_back(at, end);
          at = end == all.end() ? end : end + 1;
        }
        break;
      }
      case attribute_type::tensor: {
        a.kind = onnx::attribute_kind::tensor;
        const owned value(ort_, api::release_value, ort_.get<OrtValue*>(api::attribute_tensor, from));
        a.tensors.push_back(read_tensor(a.name, value.get(), tensor_memory::owned));
        break;
      }
      case attribute_type::graph: return;  // read_bodies
      case attribute_type::undefined: a.kind = onnx::attribute_kind::other; break;
    }
    to.push_back(std::move(a));
  }

  onnx::tensor read_initializer(const OrtValueInfo* from) {
    const std::string name = name_of(from);
    if (auto* const file = ort_.get<OrtExternalInitializerInfo*>(api::external_initializer, from)) {
      const owned info(ort_, api::release_external_initializer, file);
      return read_external(name, from, info.get());
    }
    const auto* const value = ort_.get<const OrtValue*>(api::initializer_value, from);
    if (!value) {
      onnx::tensor t;
      t.name = name, t.fault = "has no value";
      return t;
    }
    return read_tensor(name, const_cast<OrtValue*>(value), memory_);
  }

  onnx::tensor read_external(const std::string& name, const OrtValueInfo* from, const OrtExternalInitializerInfo* at) {
    const onnx::value_info declared = read_value(ort_, from);
    shape_of_value s{declared.type, {}};
    for (const onnx::declared_dim& d : declared.dims) s.extents.push_back(d.value);
    const std::string path = ort_.call(api::external_path, at);
    auto found = files_.find(path);
    if (found == files_.end()) found = files_.emplace(path, map_file(path)).first;
    const auto offset = static_cast<std::size_t>(ort_.call(api::external_offset, at));
    const std::size_t bytes = ort_.call(api::external_bytes, at);
    if (offset > found->second.size() || bytes > found->second.size() - offset)
      raise(fault::of(errc::malformed, "external data of '" + name + "' lies inside " + path + ": end of file",
                      static_cast<std::int64_t>(offset + bytes), static_cast<std::int64_t>(found->second.size())));
    return make_tensor(name, s, buffer_part(found->second, offset, bytes));
  }

  onnx::tensor read_tensor(const std::string& name, OrtValue* value, tensor_memory memory) {
    const shape_of_value s = shape_of(ort_, value);
    if (s.type == onnx::element::string) {
      onnx::tensor t;
      t.name = name, t.type = s.type, t.fault = "is a tensor of strings";
      return t;
    }
    std::int64_t count = 1;
    for (const std::int64_t d : s.extents) count *= d;
    const auto type = onnx::to_dtype(s.type);
    const std::size_t bytes =
        type ? (static_cast<std::size_t>(count) * static_cast<std::size_t>(bits_of(*type)) + 7) / 8 : 0;
    const auto* const data = static_cast<const std::byte*>(ort_.get<void*>(api::tensor_data, value));
    if (memory == tensor_memory::shared) return make_tensor(name, s, buffer::borrow(data, bytes));
    buffer copy = buffer::allocate(bytes);
    if (bytes != 0) std::memcpy(copy.data(), data, bytes);
    return make_tensor(name, s, std::move(copy));
  }

  static onnx::tensor make_tensor(const std::string& name, const shape_of_value& s, buffer data) {
    onnx::tensor t;
    t.name = name, t.type = s.type;
    const auto type = onnx::to_dtype(s.type);
    if (!type || s.extents.size() > max_rank) {
      t.fault =
          !type ? "has elements of type " + std::string(onnx::to_string(s.type)) + ", which kiln's tensors do not hold"
                : "has " + std::to_string(s.extents.size()) + " dims; kiln's tensors have at most 8";
      return t;
    }
    dims lens;
    for (const std::int64_t d : s.extents) lens.push_back(d);
    t.value = onnx::literal_of_raw({*type, lens}, std::move(data));
    return t;
  }

  const host& ort_;
  const tensor_memory memory_;
  std::map<std::string, buffer> files_;
};

}  // namespace

onnx::value_info read_value(const host& ort, const OrtValueInfo* value) {
  onnx::value_info v;
  v.name = ort.get<const char*>(api::value_name, value);
  const auto* const type = ort.get<const OrtTypeInfo*>(api::value_type_info, value);
  if (!type) return v;
  v.kind = kind_of(ort.get<value_type>(api::value_type_of, type));
  if (v.kind != onnx::value_kind::tensor) return v;
  const auto* const info = ort.get<const OrtTensorTypeAndShapeInfo*>(api::tensor_info_of_type, type);
  v.type = static_cast<onnx::element>(ort.get<int>(api::element_type, info));
  v.has_rank = ort.call(api::has_rank, info);
  if (!v.has_rank) return v;
  const std::vector<std::int64_t> extents = ort.extents_of(info);
  std::vector<const char*> names(extents.size());
  if (!names.empty()) ort.call(api::extent_names, info, names.data(), names.size());
  for (std::size_t i = 0; i < extents.size(); ++i)
    v.dims.push_back({extents[i] < 0 ? -1 : extents[i], extents[i] < 0 && names[i] ? names[i] : ""});
  return v;
}

graph_copy read_graph(const host& ort, const OrtGraph* from, tensor_memory memory) {
  graph_copy out;
  out.model.ir_version = ort.get<std::int64_t>(api::graph_ir_version, from);
  std::vector<const char*> domains(ort.get<std::size_t>(api::operator_set_count, from));
  std::vector<std::int64_t> versions(domains.size());
  if (!domains.empty()) ort.call(api::operator_sets, from, domains.data(), versions.data(), domains.size());
  for (std::size_t i = 0; i < domains.size(); ++i) out.model.versions.emplace_back(domain_of(domains[i]), versions[i]);
  out.model.main = graph_reader(ort, memory).read(from);
  out.nodes = ort.list<const OrtNode*>(api::node_count, api::nodes, from);
  for (const OrtNode* n : out.nodes)
    for (const OrtValueInfo* v : ort.list<const OrtValueInfo*>(api::node_output_count, api::node_outputs, n))
      if (v) out.values.push_back(read_value(ort, v));
  return out;
}

graph_copy read_lone_node(const host& ort, const OrtNode* node, const onnx::opsets& versions) {
  graph_copy out;
  out.model.versions = versions;
  out.nodes = {node};
  graph_reader reader(ort, tensor_memory::shared);
  out.model.main.nodes.push_back(reader.read_node(node));
  std::set<const char*, bool (*)(const char*, const char*)> seen(
      [](const char* a, const char* b) { return std::strcmp(a, b) < 0; });
  const auto read_operands = [&](const auto& values) {
    for (const OrtValueInfo* v : values)
      if (v && seen.insert(ort.get<const char*>(api::value_name, v)).second) reader.read_operand(v, out.model.main);
  };
  read_operands(ort.list<const OrtValueInfo*>(api::node_input_count, api::node_inputs, node));
  read_operands(ort.list<const OrtValueInfo*>(api::implicit_input_count, api::implicit_inputs, node));
  for (const OrtValueInfo* v : ort.list<const OrtValueInfo*>(api::node_output_count, api::node_outputs, node))
    if (v) out.model.main.outputs.push_back(read_value(ort, v));
  return out;
}

}  // namespace kiln::onnxruntime
