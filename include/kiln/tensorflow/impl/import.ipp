#include "kiln/tensorflow/import.hpp"

#include <algorithm>
#include <filesystem>

#include "kiln/core/mapped_file.hpp"
#include "kiln/tensorflow/impl/attributes.hpp"
#include "kiln/tensorflow/impl/bundle/saved_model.hpp"
#include "kiln/tensorflow/impl/file/control_flow.hpp"
#include "kiln/tensorflow/impl/file/functions.hpp"
#include "kiln/tensorflow/impl/file/graph_file.hpp"
#include "kiln/tensorflow/impl/file/tables.hpp"
#include "kiln/tensorflow/impl/ops/op_tables.hpp"
#include "kiln/tensorflow/impl/tflite/ops/op_tables.hpp"
#include "kiln/tensorflow/impl/tflite/tflite_file.hpp"

namespace kiln::tensorflow {

namespace {

// What is asked for, or what no node reads, in the order of the graph.
std::vector<onnx::value_info> outputs_of(const graph_file& file, const std::vector<std::string>& wanted) {
  const onnx::graph& g = file.graph;
  std::vector<onnx::value_info> out;
  for (std::string name : wanted) {
    if (name.ends_with(":0")) name.resize(name.size() - 2);
    const auto gives = [&](const onnx::node& n) {
      return std::find(n.outputs.begin(), n.outputs.end(), name) != n.outputs.end();
    };
    const auto is_named = [&](const auto& v) { return v.name == name; };
    if (std::none_of(g.nodes.begin(), g.nodes.end(), gives) &&
        std::none_of(g.inputs.begin(), g.inputs.end(), is_named) &&
        std::none_of(g.initializers.begin(), g.initializers.end(), is_named))
      raise(errc::not_found, "output '" + name + "': the graph has no such value");
    out.push_back(tensor_named(std::move(name)));
  }
  if (!wanted.empty()) return out;
  for (const onnx::node& n : g.nodes)
    if (!file.read.contains(n.name) && !n.outputs.empty()) out.push_back(tensor_named(n.name));
  return out;
}

// The layout of a node that does not say.
void state_layout(onnx::node& n) {
  const auto is_layout = [](const onnx::attribute& a) { return a.name == "data_format"; };
  if (std::any_of(n.attributes.begin(), n.attributes.end(), is_layout)) return;
  n.attributes.push_back(text_attribute("data_format", "NCHW"));
}
void state_layout(onnx::model& m) {
  for (onnx::node& n : m.main.nodes) state_layout(n);
  for (onnx::function& f : m.functions)
    for (onnx::node& n : f.nodes) state_layout(n);
}

// Open extents of the graph's inputs that the options close.
onnx::import_options common_options(onnx::graph& main, const import_options& options) {
  if (options.open_extent > 0)
    for (onnx::value_info& v : main.inputs)
      for (onnx::declared_dim& d : v.dims)
        if (d.value < 0) d.value = options.open_extent;
  return options.common;
}

onnx::imported import_tflite(const buffer& file, const import_options& options) {
  if (options.layout != data_format::nhwc || !options.outputs.empty() || !options.tag.empty())
    raise(errc::invalid_argument,
          "layout, outputs and tag are for TensorFlow's graphs; a TFLite file states its layout and outputs");
  tflite_file read = read_tflite(file, options.signature, options.common.max_nodes);
  onnx::import_options how = common_options(read.model.main, options);
  const std::vector<onnx::op_importer> own = tflite_importers();
  how.op_importers.insert(how.op_importers.end(), own.begin(), own.end());
  onnx::imported out = onnx::import_model(std::move(read.model), how);
  out.remarks.insert(out.remarks.end(), read.remarks.begin(), read.remarks.end());
  return out;
}

// What every form of a graph is imported with.
onnx::imported import_graph(onnx::model m, const import_options& options) {
  m.versions = {{"", onnx::newest_opset}, {std::string(domain), 1}};
  m.producer = "TensorFlow";
  m.main.name = "graph";
  onnx::import_options how = common_options(m.main, options);
  for (const onnx::function& f : m.functions) how.max_nodes += f.nodes.size();
  for (const op_importer_table table : op_importer_tables())
    how.op_importers.insert(how.op_importers.end(), table.begin(), table.end());
  if (options.layout == data_format::nchw) state_layout(m);
  return onnx::import_model(std::move(m), how);
}

onnx::imported import_frozen(const buffer& file, const import_options& options) {
  if (!options.signature.empty() || !options.tag.empty())
    raise(errc::invalid_argument,
          "signature and tag are for a SavedModel (signature for a TFLite file, too), which a frozen graph is none of");
  graph_file read = read_graph(file, options.outputs);
  onnx::model m;
  m.main.outputs = outputs_of(read, options.outputs);
  m.main.nodes = std::move(read.graph.nodes);
  m.main.inputs = std::move(read.graph.inputs);
  m.main.initializers = std::move(read.graph.initializers);
  m.functions = std::move(read.functions);
  onnx::imported out = import_graph(std::move(m), options);
  if (const std::size_t n = read.assertions)
    out.remarks.push_back(std::to_string(n) + (n == 1 ? " node was" : " nodes were") +
                          " left out as assertions: the operator or the name holds NoOp or Assert");
  return out;
}

// The graph of a SavedModel is a function of the signature's inputs, which the program calls: names of one cannot be
// mistaken for those of the other.
onnx::imported import_saved(const buffer& file, const std::string& folder, const import_options& options) {
  saved_model model = read_saved_model(file, options.tag);
  const signature chosen = find_signature(model, options.signature);
  std::optional<tensor_bundle> checkpoint;
  const std::string variables = folder + "/variables/variables";
  std::error_code none;
  if (!folder.empty() && std::filesystem::exists(variables + ".index", none)) checkpoint.emplace(variables);
  function_def main;
  main.name = "#graph";
  onnx::model m;
  onnx::node call;
  call.name = "graph";
  call.domain = function_domain;
  call.op_type = main.name;
  const auto value_of = [](const std::string& value) {
    const output_ref r = parts_of(value);
    return output_name(r.node, r.k);
  };
  std::vector<named_value> outputs = chosen.outputs;
  if (!options.outputs.empty()) {
    outputs.clear();
    for (const std::string& name : options.outputs) {
      const auto is_named = [&](const named_value& v) { return v.name == name; };
      const auto found = std::find_if(chosen.outputs.begin(), chosen.outputs.end(), is_named);
      outputs.push_back(found == chosen.outputs.end() ? named_value{name, name, {}} : *found);
    }
  }
  if (outputs.empty()) raise(errc::malformed, "signature '" + chosen.name + "' has no outputs");
  for (const named_value& v : chosen.inputs) {
    check_dense(v, chosen);
    main.inputs.push_back(value_of(v.value));
    m.main.inputs.push_back(v.declared);
    call.inputs.push_back(v.name);
  }
  for (const named_value& v : outputs) {
    check_dense(v, chosen);
    main.outputs.push_back(value_of(v.value));
    const auto clashes = [&](const named_value& in) { return in.name == v.name; };
    const bool is_input = std::any_of(chosen.inputs.begin(), chosen.inputs.end(), clashes);
    call.outputs.push_back(is_input ? v.name + ":output" : v.name);
    m.main.outputs.push_back(tensor_named(call.outputs.back()));
  }
  main.nodes = model.graph.nodes;
  const std::vector<bool> runs = needed_by(main, true);
  std::vector<onnx::node> kept;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i]) kept.push_back(std::move(main.nodes[i]));
  main.nodes = std::move(kept);
  set_variables(main, model.graph, checkpoint);
  set_tables(model.graph, main.nodes);
  model.graph.nodes = std::move(main.nodes);
  raise_control_flow(model.graph);
  main.nodes = std::move(model.graph.nodes);
  function_library functions(model.graph);
  functions.use(functions.add(std::move(main)), call);
  m.main.nodes = {std::move(call)};
  m.functions = functions.take();
  return import_graph(std::move(m), options);
}

bool is_saved_model(const buffer& file) { return begins_as_saved_model({file.data(), file.size()}); }
bool is_tflite(const buffer& file) { return begins_as_tflite({file.data(), file.size()}); }

// A file that is in memory; the variables of a SavedModel are in its folder, which may be empty.
onnx::imported import_bytes(const buffer& file, const std::string& folder, const import_options& options) {
  if (is_tflite(file)) return import_tflite(file, options);
  return is_saved_model(file) ? import_saved(file, folder, options) : import_frozen(file, options);
}

// Constants of the program are parts of it.
buffer copy_of(std::span<const std::byte> bytes) {
  buffer own = buffer::allocate(bytes.size());
  std::copy(bytes.begin(), bytes.end(), own.data());
  return own;
}

bool is_folder(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_directory(path, none);
}
// The file of a SavedModel in a folder; empty where there is none.
std::string saved_model_file(const std::string& folder) {
  std::error_code none;
  for (const char* const name : {"/saved_model.pb", "/saved_model.pbtxt"})
    if (std::filesystem::exists(folder + name, none)) return folder + name;
  return {};
}
// A model's file: itself, or the one in the folder of a SavedModel.
std::string file_of(const std::string& path) {
  if (!is_folder(path)) return path;
  const std::string file = saved_model_file(path);
  if (file.empty()) raise(errc::not_found, "the folder has no saved_model.pb");
  return file;
}
std::string folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}
// Whether a file is for this importer, if only to say why it cannot be read.
bool is_ours(std::span<const std::byte> bytes) {
  return begins_as_tflite(bytes) || begins_as_graph(bytes) || begins_as_saved_model(bytes);
}
bool is_ours(const std::string& path) try {
  if (is_folder(path)) return !saved_model_file(path).empty();
  const buffer file = map_file(path);
  return is_ours({file.data(), file.size()});
} catch (const error&) {
  return false;
}

// An ONNX model says its layout and its outputs.
void check_for_onnx(const import_options& options) {
  if (options.layout != data_format::nhwc || options.open_extent != 0 || !options.outputs.empty() ||
      !options.signature.empty() || !options.tag.empty())
    raise(errc::invalid_argument,
          "layout, open_extent, outputs, signature and tag are for TensorFlow's models, which this is none of");
}

}  // namespace

onnx::imported read_model(const std::string& path, const import_options& options) try {
  const std::string file = file_of(path);
  const buffer bytes = map_file(file);
  return is_folder(path) ? import_saved(bytes, folder_of(file), options)
                         : import_bytes(bytes, folder_of(file), options);
} catch (error& e) {
  throw e.at_source(path);
}

onnx::imported parse_model(std::span<const std::byte> bytes, const import_options& options) {
  return import_bytes(copy_of(bytes), {}, options);
}

bool is_tflite_file(const std::string& path) try { return is_tflite(map_file(path)); } catch (const error&) {
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
  if (is_ours(bytes)) return import_bytes(copy_of(bytes), directory, options);
  check_for_onnx(options);
  return onnx::parse_model(bytes, directory, options.common);
}
std::vector<onnx::value_info> any_model_inputs(const std::string& path, const import_options& options) {
  if (!is_ours(path)) return onnx::model_inputs(path);
  try {
    const buffer file = map_file(file_of(path));
    if (is_tflite(file)) return tflite_inputs(file, options.signature);
    if (!is_folder(path) && !is_saved_model(file)) return read_graph(file).graph.inputs;
    const saved_model model = read_saved_model(file, options.tag);
    std::vector<onnx::value_info> out;
    const signature& chosen = find_signature(model, options.signature);
    for (const named_value& v : chosen.inputs) {
      check_dense(v, chosen);
      out.push_back(v.declared);
    }
    return out;
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
  constexpr std::string_view conditions = "becomes `If`", loops = "becomes `While`", functions = "inlined",
                             tables = "of constants";
  std::vector<operator_info> out{{"Enter", loops},
                                 {"Exit", loops},
                                 {"InitializeTable", tables},
                                 {"InitializeTableV2", tables},
                                 {"LookupTableImport", tables},
                                 {"LookupTableImportV2", tables},
                                 {"LoopCond", loops},
                                 {"Merge", conditions},
                                 {"NextIteration", loops},
                                 {"PartitionedCall", functions},
                                 {"Placeholder", {}},
                                 {"StatefulPartitionedCall", functions},
                                 {"Switch", conditions}};
  for (const op_importer_table table : op_importer_tables())
    for (const onnx::op_importer& o : table) out.push_back({o.op_type, o.note});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

}  // namespace kiln::tensorflow
