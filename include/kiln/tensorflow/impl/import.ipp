#include "kiln/tensorflow/import.hpp"

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "kiln/core/mapped_file.hpp"
#include "kiln/tensorflow/impl/file/graph_file.hpp"
#include "kiln/tensorflow/impl/ops/op_tables.hpp"

namespace kiln::tensorflow {

namespace {

// What is asked for, or what no node reads, in the order of the graph.
std::vector<onnx::value_info> outputs_of(onnx::graph& g, const std::vector<std::string>& wanted) {
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
      for (std::size_t k = n.outputs.size(); k <= std::stoul(digits); ++k)  // an output that no node reads
        n.outputs.push_back(output_name(n.name, k));
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
  std::unordered_set<std::string_view> read;
  for (const onnx::node& n : g.nodes)
    for (const std::string& input : n.inputs) read.insert(input);
  for (const onnx::node& n : g.nodes) {
    const bool is_read =
        std::any_of(n.outputs.begin(), n.outputs.end(), [&](const auto& o) { return read.contains(o); });
    if (!is_read) out.push_back(tensor(n.name));
  }
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

onnx::imported import_file(const buffer& file, const import_options& options) {
  onnx::model m;
  m.versions = {{"", onnx::newest_opset}, {std::string(domain), 1}};
  m.producer = "TensorFlow";
  m.main = read_graph(file).graph;
  m.main.name = "graph";
  m.main.outputs = outputs_of(m.main, options.outputs);
  onnx::import_options how = options.common;
  if (options.open_extent > 0)
    for (onnx::value_info& v : m.main.inputs)
      for (onnx::declared_dim& d : v.dims)
        if (d.value < 0) d.value = options.open_extent;
  for (const op_importer_table table : op_importer_tables())
    how.op_importers.insert(how.op_importers.end(), table.begin(), table.end());
  if (options.layout == data_format::nchw)
    for (onnx::node& n : m.main.nodes) state_layout(n);
  return onnx::import_model(std::move(m), how);
}

}  // namespace

onnx::imported read_model(const std::string& path, const import_options& options) try {
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    raise(errc::unsupported, "a folder (SavedModel) keeps its variables beside its graph: freeze it into one GraphDef");
  return import_file(map_file(path), options);
} catch (error& e) {
  throw e.at_source(path);
}

onnx::imported parse_model(std::span<const std::byte> bytes, const import_options& options) {
  buffer own = buffer::allocate(bytes.size());  // constants of the program are parts of it
  std::copy(bytes.begin(), bytes.end(), own.data());
  return import_file(own, options);
}

bool is_graph_file(const std::string& path) try {
  const buffer file = map_file(path);
  return begins_as_graph({file.data(), file.size()});
} catch (const error&) {
  return false;
}

onnx::imported read_any_model(const std::string& path, const import_options& options) {
  std::error_code none;
  return is_graph_file(path) || std::filesystem::is_directory(path, none) ? read_model(path, options)
                                                                          : onnx::read_model(path, options.common);
}
onnx::imported parse_any_model(std::span<const std::byte> bytes, const std::string& directory,
                               const import_options& options) {
  return begins_as_graph(bytes) ? parse_model(bytes, options) : onnx::parse_model(bytes, directory, options.common);
}
std::vector<onnx::value_info> any_model_inputs(const std::string& path) {
  return is_graph_file(path) ? read_graph(map_file(path)).graph.inputs : onnx::model_inputs(path);
}

std::vector<operator_info> operators() {
  std::vector<operator_info> out{{"Const", {}}, {"Placeholder", {}}};
  for (const op_importer_table table : op_importer_tables())
    for (const onnx::op_importer& o : table) out.push_back({o.op_type, o.note});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

}  // namespace kiln::tensorflow
