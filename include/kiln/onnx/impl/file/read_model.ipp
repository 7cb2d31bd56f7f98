#include "kiln/onnx/impl/file/read_model.hpp"

#include <google/protobuf/io/coded_stream.h>

#include "kiln/onnx/impl/file/fault_list.hpp"
#include "kiln/onnx/impl/file/proto.hpp"
#include "kiln/onnx/impl/file/strip_raw_data.hpp"

namespace kiln::onnx {

namespace {
bool parses(google::protobuf::MessageLite& into, std::span<const std::byte> bytes, int nesting) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  in.SetTotalBytesLimit(std::numeric_limits<int>::max());
  in.SetRecursionLimit(nesting);
  return into.ParsePartialFromCodedStream(&in) && in.ConsumedEntireMessage();
}
}  // namespace

void parse_message(google::protobuf::MessageLite& into, std::span<const std::byte> bytes, int nesting,
                   std::string_view what) {
  if (bytes.empty()) raise(errc::malformed, "the file is empty, not " + std::string(what));
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    raise(errc::limit, "a message ends at 2 GiB, this one has " + std::to_string(bytes.size()) +
                           " bytes; larger weights belong in external data");
  if (parses(into, bytes, nesting)) return;
  if (nests_deeper(bytes, true, nesting))
    raise(errc::limit, "messages are nested deeper than the limit of " + std::to_string(nesting) +
                           ", of which each nested graph takes 3");
  raise(errc::malformed, "the file is truncated, or not " + std::string(what));
}

value_info read_value_info(const onnx_proto::ValueInfoProto& from) {
  value_info v;
  v.name = from.name();
  const onnx_proto::TypeProto* type = &from.type();
  if (type->has_sequence_type()) {
    v.kind = value_kind::sequence;
    type = &type->sequence_type().elem_type();
    v.holds_map = type->has_map_type();
    if (v.holds_map) type = &type->map_type().value_type();
  } else if (type->has_optional_type()) {
    v.kind = value_kind::optional;
    type = &type->optional_type().elem_type();
    v.holds_sequence = type->has_sequence_type();
    if (v.holds_sequence) type = &type->sequence_type().elem_type();
  } else if (type->has_map_type()) {
    v.kind = value_kind::map;
    type = &type->map_type().value_type();
  } else if (type->has_sparse_tensor_type()) {
    v.kind = value_kind::sparse_tensor;
  } else if (type->has_tensor_type()) {
    v.kind = value_kind::tensor;
  }
  if (!type->has_tensor_type()) return v;
  const auto& tensor_type = type->tensor_type();
  v.type = static_cast<element>(tensor_type.elem_type());
  v.has_rank = tensor_type.has_shape();
  for (const auto& d : tensor_type.shape().dim()) {
    declared_dim out;
    if (d.has_dim_value()) out.value = d.dim_value();
    out.name = d.dim_param();
    v.dims.push_back(std::move(out));
  }
  return v;
}

namespace {

namespace pb = onnx_proto;

std::string domain_of(const std::string& d) { return d == "ai.onnx" ? std::string() : d; }

// Calls f(field) for each field of a number in fields that came after this onnx.proto.
template <class F> void for_unknown(const std::string& fields, std::uint64_t number, F&& f) {
  wire_reader all(std::as_bytes(std::span(fields)));
  for (wire_field field; all.next(field);)
    if (field.number == number && field.encoding == wire_encoding::delimited) f(field);
}

template <class Strings> std::vector<std::string> strings(const Strings& from) { return {from.begin(), from.end()}; }

opsets read_opsets(const google::protobuf::RepeatedPtrField<pb::OperatorSetIdProto>& from) {
  opsets out;
  for (const auto& o : from) out.emplace_back(domain_of(o.domain()), o.version());
  return out;
}

struct reader {
  external_files files;
  std::size_t max_nesting = 0;
  std::vector<bytes_view> raw{};  // raw data that the messages of the main graph's initializers lack
  fault_list broken{};

  template <class Message>
  tensor guarded(Message& m, const std::string& name, tensor (*read)(Message&, external_files&)) {
    try {
      return read(m, files);
    } catch (const error& e) {
      if (e.code() == errc::limit) throw;
      broken.add(e);
      if (broken.full()) broken.throw_all({});
    }
    tensor t;
    t.name = name;
    return t;
  }
  tensor read(pb::TensorProto& m) { return guarded(m, m.name(), read_tensor_message); }
  tensor read(pb::SparseTensorProto& m) { return guarded(m, m.values().name(), read_sparse_message); }

  // attribute_kind has the numbers of ONNX's types. Before IR version 2 attributes may have no type.
  static attribute_kind kind_of(const pb::AttributeProto& a) {
    using A = pb::AttributeProto;
    static_assert(static_cast<int>(attribute_kind::real) == A::FLOAT &&
                  static_cast<int>(attribute_kind::graphs) == A::GRAPHS);
    if (a.type() == A::SPARSE_TENSOR) return attribute_kind::tensor;  // read as a dense one
    if (a.type() != A::UNDEFINED)
      return a.type() <= A::GRAPHS ? static_cast<attribute_kind>(a.type()) : attribute_kind::other;
    if (a.has_f()) return attribute_kind::real;
    if (a.has_i()) return attribute_kind::integer;
    if (a.has_s()) return attribute_kind::text;
    if (a.has_t()) return attribute_kind::tensor;
    if (a.has_g()) return attribute_kind::graph;
    if (a.floats_size()) return attribute_kind::reals;
    if (a.ints_size()) return attribute_kind::integers;
    if (a.strings_size()) return attribute_kind::texts;
    return attribute_kind::none;
  }

  attribute read(pb::AttributeProto& from, std::size_t depth) {
    attribute a;
    a.name = from.name();
    a.reference = from.ref_attr_name();
    a.kind = kind_of(from);
    a.real = from.f();
    a.integer = from.i();
    a.text = std::move(*from.mutable_s());
    a.reals.assign(from.floats().begin(), from.floats().end());
    a.integers.assign(from.ints().begin(), from.ints().end());
    a.texts = strings(from.strings());
    if (from.has_t()) a.tensors.push_back(read(*from.mutable_t()));
    if (from.has_sparse_tensor()) a.tensors.push_back(read(*from.mutable_sparse_tensor()));
    for (auto& t : *from.mutable_tensors()) a.tensors.push_back(read(t));
    if (from.has_g()) a.graphs.push_back(read(*from.mutable_g(), depth + 1));
    for (auto& g : *from.mutable_graphs()) a.graphs.push_back(read(g, depth + 1));
    return a;
  }

  node read(pb::NodeProto& from, std::size_t depth) {
    node n;
    n.name = from.name();
    n.op_type = from.op_type();
    n.domain = domain_of(from.domain());
    n.inputs = strings(from.input());
    n.outputs = strings(from.output());
    n.attributes.reserve(static_cast<std::size_t>(from.attribute_size()));
    for (auto& a : *from.mutable_attribute()) n.attributes.push_back(read(a, depth));
    for_unknown(from.unknown_fields(), 8, [&](const wire_field& f) { n.overload = f.text(); });
    return n;
  }

  graph read(pb::GraphProto& from, std::size_t depth = 0) {
    if (depth > max_nesting)
      raise(errc::limit, "graphs are nested deeper than the limit of " + std::to_string(max_nesting));
    graph g;
    g.name = from.name();
    g.nodes.reserve(static_cast<std::size_t>(from.node_size()));
    for (auto& n : *from.mutable_node()) g.nodes.push_back(read(n, depth));
    for (int k = 0; k < from.initializer_size(); ++k) {
      if (depth == 0 && static_cast<std::size_t>(k) < raw.size()) files.stripped = raw[static_cast<std::size_t>(k)];
      g.initializers.push_back(read(*from.mutable_initializer(k)));
      files.stripped = {};
    }
    for (auto& t : *from.mutable_sparse_initializer()) g.initializers.push_back(read(t));
    for (const auto& v : from.input()) g.inputs.push_back(read_value_info(v));
    for (const auto& v : from.output()) g.outputs.push_back(read_value_info(v));
    return g;
  }

  function read(pb::FunctionProto& from) {
    function f;
    f.domain = domain_of(from.domain());
    f.name = from.name();
    f.inputs = strings(from.input());
    f.outputs = strings(from.output());
    f.attributes = strings(from.attribute());
    for (auto& n : *from.mutable_node()) f.nodes.push_back(read(n, 1));
    f.versions = read_opsets(from.opset_import());
    for_unknown(from.unknown_fields(), 11, [&](const wire_field& field) {
      pb::AttributeProto a;
      if (!a.ParsePartialFromString(field.text()))
        raise(errc::malformed, "function " + f.name + " has a broken attribute");
      f.defaults.push_back(read(a, 1));
    });
    for_unknown(from.unknown_fields(), 13, [&](const wire_field& name) { f.overload = name.text(); });
    return f;
  }
};

}  // namespace

model read_messages(std::span<const std::byte> bytes, const std::string& directory, const import_options& options,
                    const std::string& real_directory, const buffer* file) {
  pb::ModelProto message;
  const int nesting = static_cast<int>(options.max_nesting) * 4 + 64;
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  auto stripped = bytes.size() <= most ? strip_raw_data(bytes) : std::nullopt;
  if (stripped && !parses(message, std::as_bytes(std::span(stripped->message)), nesting)) stripped.reset();
  if (!stripped) {
    message.Clear();
    parse_message(message, bytes, nesting, "an ONNX model");
  }
  if (!message.has_graph()) raise(errc::malformed, "not an ONNX model: it has no graph");
  reader r{{directory.empty() ? "." : directory, options.max_bytes, real_directory, {}}, options.max_nesting, {}, {}};
  if (stripped) r.raw = std::move(stripped->raw);
  r.files.model = file;
  model m;
  m.ir_version = message.ir_version();
  m.versions = read_opsets(message.opset_import());
  m.producer = message.producer_name();
  if (!message.producer_version().empty()) m.producer += " " + message.producer_version();
  for (const auto& p : message.metadata_props()) m.metadata.emplace_back(p.key(), p.value());
  // before IR version 3 a model has no opset_import: its operators are those of version 1
  if (m.versions.empty() && m.ir_version < 3) m.versions.emplace_back("", 1);
  if (m.versions.empty()) raise(errc::malformed, "the model imports no operator set");
  m.main = r.read(*message.mutable_graph());
  for (auto& f : *message.mutable_functions()) m.functions.push_back(r.read(f));
  if (!r.broken.empty()) r.broken.throw_all({});
  return m;
}

}  // namespace kiln::onnx
