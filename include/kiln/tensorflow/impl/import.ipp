#include "kiln/tensorflow/import.hpp"

#include <algorithm>
#include <filesystem>

#include "kiln/core/mapped_file.hpp"
#include "kiln/tensorflow/impl/file/graph_file.hpp"
#include "kiln/tensorflow/impl/ops/op_tables.hpp"
#include "kiln/tensorflow/impl/tflite/ops/op_tables.hpp"
#include "kiln/tensorflow/impl/tflite/tflite_file.hpp"

namespace kiln::tensorflow {

namespace {

// Of a model that keeps its variables beside its graph.
constexpr const char* saved_model =
    "a folder (SavedModel) keeps its variables beside its graph: freeze it into one GraphDef";
constexpr const char* saved_model_file =
    "the file of a SavedModel, which keeps its variables beside its graph: freeze it into one GraphDef";

// What is asked for, or what no node reads, in the order of the graph.
std::vector<onnx::value_info> outputs_of(graph_file& file, const std::vector<std::string>& wanted) {
  onnx::graph& g = file.graph;
  const auto tensor = [](std::string name) {
    onnx::value_info v;
    v.name = std::move(name);
    v.kind = onnx::value_kind::tensor;
    return v;
  };
  std::vector<onnx::value_info> out;
  for (std::string name : wanted) {
    if (name.ends_with(":0")) name.resize(name.size() - 2);
    const auto gives = [&](onnx::node& n) {
      if (name == n.name) return true;
      if (!name.starts_with(n.name + ":")) return false;
      const std::string digits = name.substr(n.name.size() + 1);
      if (digits.empty() || digits.size() > 4 || digits.find_first_not_of("0123456789") != std::string::npos)
        return false;
      const std::size_t k = std::stoul(digits);
      if (k > last_output || output_name(n.name, k) != name) return false;
      if (k >= n.outputs.size()) n.outputs.resize(k + 1);  // an output that no node reads
      n.outputs[k] = name;
      return true;
    };
    const auto is_named = [&](const auto& v) { return v.name == name; };
    if (std::none_of(g.nodes.begin(), g.nodes.end(), gives) &&
        std::none_of(g.inputs.begin(), g.inputs.end(), is_named) &&
        std::none_of(g.initializers.begin(), g.initializers.end(), is_named))
      raise(errc::not_found, "output '" + name + "': the graph has no such value");
    out.push_back(tensor(std::move(name)));
  }
  if (!wanted.empty()) return out;
  for (const onnx::node& n : g.nodes)
    if (!file.read.contains(n.name)) out.push_back(tensor(n.name));
  return out;
}

// The layout of a node that does not say.
void state_layout(onnx::node& n) {
  const auto is_layout = [](const onnx::attribute& a) { return a.name == "data_format"; };
  if (std::any_of(n.attributes.begin(), n.attributes.end(), is_layout)) return;
  onnx::attribute a;
  a.name = "data_format";
  a.kind = onnx::attribute_kind::text;
  a.text = "NCHW";
  n.attributes.push_back(std::move(a));
}

onnx::import_options common_options(onnx::graph& main, const import_options& options) {
  if (options.open_extent > 0)
    for (onnx::value_info& v : main.inputs)
      for (onnx::declared_dim& d : v.dims)
        if (d.value < 0) d.value = options.open_extent;
  return options.common;
}

onnx::imported import_tflite(const buffer& file, const import_options& options) {
  if (options.layout != data_format::nhwc || !options.outputs.empty())
    raise(errc::invalid_argument, "layout and outputs are for TensorFlow's graphs; a TFLite file states both");
  tflite_file read = read_tflite(file, options.signature, options.common.max_nodes);
  onnx::import_options how = common_options(read.model.main, options);
  const std::vector<onnx::op_importer> own = tflite_importers();
  how.op_importers.insert(how.op_importers.end(), own.begin(), own.end());
  onnx::imported out = onnx::import_model(std::move(read.model), how);
  out.remarks.insert(out.remarks.end(), read.remarks.begin(), read.remarks.end());
  return out;
}

onnx::imported import_file(const buffer& file, const import_options& options) {
  if (begins_as_tflite({file.data(), file.size()})) return import_tflite(file, options);
  if (!options.signature.empty())
    raise(errc::invalid_argument, "signature is for TFLite's files, which this is none of");
  onnx::model m;
  m.versions = {{"", onnx::newest_opset}, {std::string(domain), 1}};
  m.producer = "TensorFlow";
  if (begins_as_saved_model({file.data(), file.size()})) raise(errc::unsupported, saved_model_file);
  graph_file read = read_graph(file);
  std::vector<onnx::value_info> outputs = outputs_of(read, options.outputs);
  m.main = std::move(read.graph);
  m.main.name = "graph";
  m.main.outputs = std::move(outputs);
  onnx::import_options how = common_options(m.main, options);
  for (const op_importer_table table : op_importer_tables())
    how.op_importers.insert(how.op_importers.end(), table.begin(), table.end());
  if (options.layout == data_format::nchw)
    for (onnx::node& n : m.main.nodes) state_layout(n);
  onnx::imported out = onnx::import_model(std::move(m), how);
  if (const std::size_t n = read.assertions)
    out.remarks.push_back(std::to_string(n) + (n == 1 ? " node was" : " nodes were") +
                          " left out as assertions: the operator or the name holds NoOp or Assert");
  return out;
}

bool is_folder(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_directory(path, none);
}
bool is_saved_model_folder(const std::string& path) {
  std::error_code none;
  return std::filesystem::exists(path + "/saved_model.pb", none) ||
         std::filesystem::exists(path + "/saved_model.pbtxt", none);
}
// Whether a file is for this importer, if only to say why it cannot be read.
bool is_ours(std::span<const std::byte> bytes) {
  return begins_as_tflite(bytes) || begins_as_graph(bytes) || begins_as_saved_model(bytes);
}
bool is_ours(const std::string& path) try {
  if (is_saved_model_folder(path)) return true;
  const buffer file = map_file(path);
  return is_ours({file.data(), file.size()});
} catch (const error&) {
  return false;
}

// An ONNX model says its layout and its outputs.
void check_for_onnx(const import_options& options) {
  if (options.layout != data_format::nhwc || options.open_extent != 0 || !options.outputs.empty() ||
      !options.signature.empty())
    raise(errc::invalid_argument,
          "layout, open_extent, outputs and signature are for TensorFlow's models, which this is none of");
}

}  // namespace

onnx::imported read_model(const std::string& path, const import_options& options) try {
  if (is_folder(path)) raise(errc::unsupported, saved_model);
  return import_file(map_file(path), options);
} catch (error& e) {
  throw e.at_source(path);
}

onnx::imported parse_model(std::span<const std::byte> bytes, const import_options& options) {
  buffer own = buffer::allocate(bytes.size());  // constants of the program are parts of it
  std::copy(bytes.begin(), bytes.end(), own.data());
  return import_file(own, options);
}

bool is_tflite_file(const std::string& path) try {
  const buffer file = map_file(path);
  return begins_as_tflite({file.data(), file.size()});
} catch (const error&) {
  return false;
}

bool is_graph_file(const std::string& path) try {
  const buffer file = map_file(path);
  return begins_as_graph({file.data(), file.size()});
} catch (const error&) {
  return false;
}

onnx::imported read_any_model(const std::string& path, const import_options& options) {
  if (is_ours(path)) return read_model(path, options);
  std::error_code none;
  try {
    if (std::filesystem::exists(path, none)) check_for_onnx(options);
  } catch (error& e) {
    throw e.at_source(path);
  }
  return onnx::read_model(path, options.common);
}
onnx::imported parse_any_model(std::span<const std::byte> bytes, const std::string& directory,
                               const import_options& options) {
  if (is_ours(bytes)) return parse_model(bytes, options);
  check_for_onnx(options);
  return onnx::parse_model(bytes, directory, options.common);
}
std::vector<onnx::value_info> any_model_inputs(const std::string& path, const std::string& signature) {
  if (!is_ours(path)) return onnx::model_inputs(path);
  try {
    if (is_folder(path)) raise(errc::unsupported, saved_model);
    const buffer file = map_file(path);
    if (begins_as_tflite({file.data(), file.size()})) return tflite_inputs(file, signature);
    if (begins_as_saved_model({file.data(), file.size()})) raise(errc::unsupported, saved_model_file);
    return read_graph(file).graph.inputs;
  } catch (error& e) {
    throw e.at_source(path);
  }
}

std::vector<operator_info> tflite_operators() {
  // those that the reader makes calls and constants of
  std::vector<operator_info> out{{"ASSIGN_VARIABLE", "in an initializer"},
                                 {"CALL", {}},
                                 {"CALL_ONCE", {}},
                                 {"IF", {}},
                                 {"READ_VARIABLE", {}},
                                 {"VAR_HANDLE", {}},
                                 {"WHILE", {}}};
  for (const tflite_table table : tflite_tables())
    for (const tflite_operator& o : table) out.push_back({o.name, o.note});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

std::vector<operator_info> operators() {
  std::vector<operator_info> out{{"Const", {}}, {"Placeholder", {}}};
  for (const op_importer_table table : op_importer_tables())
    for (const onnx::op_importer& o : table) out.push_back({o.op_type, o.note});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

}  // namespace kiln::tensorflow
