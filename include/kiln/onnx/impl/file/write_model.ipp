#include <algorithm>
#include <set>

#include "kiln/onnx/impl/file/files.hpp"
#include "kiln/onnx/impl/file/value_message.hpp"
#include "kiln/onnx/model_file.hpp"

namespace kiln::onnx {

namespace {

namespace pb = onnx_proto;

class model_writer {
 public:
  pb::ModelProto write(const model& m) {
    if (!m.functions.empty())
      raise(errc::unsupported, "model-local function " + m.functions[0].name + " can't be written");
    pb::ModelProto out;
    out.set_ir_version(m.ir_version);
    if (!m.producer.empty()) out.set_producer_name(m.producer);
    for (const auto& [key, value] : m.metadata) {
      auto& entry = *out.add_metadata_props();
      entry.set_key(key), entry.set_value(value);
    }
    write(m.main, *out.mutable_graph());
    for (const auto& [domain, version] : m.versions) {
      if (!domain.empty() && !domains_.contains(domain)) continue;
      auto& set = *out.add_opset_import();
      set.set_domain(domain), set.set_version(version);
    }
    return out;
  }

 private:
  void write(const graph& g, pb::GraphProto& to) {
    to.set_name(g.name);
    for (const node& n : g.nodes) write(n, *to.add_node());
    for (const tensor& t : g.initializers) write(t, *to.add_initializer());
    for (const value_info& v : g.inputs) write(v, *to.add_input());
    for (const value_info& v : g.outputs) write(v, *to.add_output());
  }

  void write(const node& n, pb::NodeProto& to) {
    domains_.insert(n.domain);
    if (!n.name.empty()) to.set_name(n.name);
    to.set_op_type(n.op_type);
    if (!n.domain.empty()) to.set_domain(n.domain);
    for (const std::string& i : n.inputs) to.add_input(i);
    for (const std::string& o : n.outputs) to.add_output(o);
    for (const attribute& a : n.attributes) write(a, *to.add_attribute());
  }

  void write(const attribute& a, pb::AttributeProto& to) {
    to.set_name(a.name);
    if (!a.reference.empty()) to.set_ref_attr_name(a.reference);
    if (a.kind != attribute_kind::other) to.set_type(static_cast<pb::AttributeProto::AttributeType>(a.kind));
    switch (a.kind) {
      case attribute_kind::real: to.set_f(a.real); break;
      case attribute_kind::integer: to.set_i(a.integer); break;
      case attribute_kind::text: to.set_s(a.text); break;
      case attribute_kind::reals: to.mutable_floats()->Assign(a.reals.begin(), a.reals.end()); break;
      case attribute_kind::integers: to.mutable_ints()->Assign(a.integers.begin(), a.integers.end()); break;
      case attribute_kind::texts:
        for (const std::string& t : a.texts) to.add_strings(t);
        break;
      case attribute_kind::tensor:
        for (const tensor& t : a.tensors) write(t, *to.mutable_t());
        break;
      case attribute_kind::tensors:
        for (const tensor& t : a.tensors) write(t, *to.add_tensors());
        break;
      case attribute_kind::graph:
        for (const graph& g : a.graphs) write(g, *to.mutable_g());
        break;
      case attribute_kind::graphs:
        for (const graph& g : a.graphs) write(g, *to.add_graphs());
        break;
      case attribute_kind::none:
      case attribute_kind::other: break;
    }
  }

  static void write(const tensor& t, pb::TensorProto& to) {
    if (!t.name.empty()) to.set_name(t.name);
    if (t.fault.empty()) return set_tensor(to, argument(t.value));
    to.set_data_type(static_cast<int>(t.type));
    to.set_doc_string(t.fault);
  }

  static void write(const value_info& v, pb::ValueInfoProto& to) {
    to.set_name(v.name);
    if (v.type == element::undefined) return;
    if (v.kind == value_kind::tensor) return set_type(v, *to.mutable_type());
    if (v.kind == value_kind::sequence)
      set_type(v, *to.mutable_type()->mutable_sequence_type()->mutable_elem_type());
    else if (v.kind == value_kind::optional)
      set_type(v, *to.mutable_type()->mutable_optional_type()->mutable_elem_type());
  }

  static void set_type(const value_info& v, pb::TypeProto& to) {
    auto& type = *to.mutable_tensor_type();
    type.set_elem_type(static_cast<int>(v.type));
    if (!v.has_rank) return;
    auto& extents = *type.mutable_shape();
    for (const declared_dim& d : v.dims) {
      auto& dim = *extents.add_dim();
      if (d.value >= 0)
        dim.set_dim_value(d.value);
      else if (!d.name.empty())
        dim.set_dim_param(d.name);
    }
  }

  std::set<std::string> domains_;  // of the nodes
};

std::size_t tensor_bytes(const graph& g) {
  std::size_t out = 0;
  for (const tensor& t : g.initializers)
    if (t.fault.empty()) out += static_cast<std::size_t>(t.value.get_shape().bytes().value());
  return out;
}

}  // namespace

std::string model_bytes(const model& m) {
  constexpr std::size_t most = std::size_t{1} << 31;
  const auto refuse = [] { raise(errc::limit, "the model does not fit into one ONNX message"); };
  if (tensor_bytes(m.main) >= most) refuse();  // before they are copied
  const pb::ModelProto message = model_writer().write(m);
  std::string bytes;
  if (message.ByteSizeLong() >= most || !message.SerializeToString(&bytes)) refuse();
  return bytes;
}

void write_model(const std::string& path, const model& m) { write_file(path, model_bytes(m)); }

}  // namespace kiln::onnx
