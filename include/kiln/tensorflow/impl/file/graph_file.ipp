#include "kiln/tensorflow/impl/file/graph_file.hpp"

#include <algorithm>
#include <unordered_map>

#include "kiln/tensorflow/impl/file/control_flow.hpp"
#include "kiln/tensorflow/impl/file/functions.hpp"
#include "kiln/tensorflow/impl/file/message.hpp"
#include "kiln/tensorflow/impl/file/tables.hpp"
#include "kiln/tensorflow/impl/file/text_format.hpp"
#include "kiln/tensorflow/import.hpp"

namespace kiln::tensorflow {

namespace {

using onnx::attribute, onnx::attribute_kind, onnx::element;

onnx::value_info input_of(const onnx::node& n) {
  onnx::value_info v;
  v.name = n.name;
  v.kind = onnx::value_kind::tensor;
  const attribute* const type = find_attribute(n, "dtype");
  if (!type || type->kind != attribute_kind::integer)
    refuse("node '" + n.name + "'", "a placeholder has attribute 'dtype'");
  v.type = static_cast<element>(type->integer);
  if (const attribute* const s = find_attribute(n, "shape"); s && s->kind == attribute_kind::integers) {
    v.has_rank = true;
    for (const std::int64_t d : s->integers) v.dims.push_back({d < 0 ? -1 : d, {}});
  }
  return v;
}

// What checks and control flow leave in a frozen graph, and computes nothing.
bool is_assertion(std::string_view name) {
  return name.find("NoOp") != std::string_view::npos || name.find("Assert") != std::string_view::npos;
}

// A graph whose nodes are known by name.
class named_nodes {
 public:
  explicit named_nodes(std::vector<onnx::node> nodes)
      : nodes_(std::move(nodes)), by_name_(by_name(nodes_)), read_(nodes_.size()) {}

  graph_file file(function_library& functions, std::span<const std::string> wanted) {
    graph_file out;
    out.read = read_names();
    const std::vector<bool> kept = kept_nodes();
    for (const std::string& name : wanted) {
      const auto [node, k] = parts_of(name);
      if (const auto found = by_name_.find(node); found != by_name_.end() && k <= last_output)
        read_[found->second].push_back(k);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (kept[i]) link(nodes_[i], kept);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (kept[i])
        add(out.graph, i);
      else
        ++out.assertions;
    }
    for (onnx::node& n : out.graph.nodes) functions.write_calls(n);
    return out;
  }

 private:
  // Of all inputs, also those that are left out: what only an assertion reads is no output. A NoOp groups values
  // without reading them.
  std::unordered_set<std::string> read_names() const {
    std::unordered_set<std::string> out;
    const std::vector<std::string> none;
    for (const onnx::node& n : nodes_)
      for (const std::string& input : n.op_type == "NoOp" ? none : n.inputs)
        out.emplace(is_order(input) ? std::string_view(input).substr(1) : parts_of(input).node);
    return out;
  }
  // All but assertions. A node that is one by its name only stays where a node that stays reads it.
  std::vector<bool> kept_nodes() const {
    std::vector<bool> kept(nodes_.size());
    std::vector<std::size_t> waiting;
    const auto keep = [&](std::size_t i) {
      if (kept[i] || is_assertion(nodes_[i].op_type)) return;
      kept[i] = true;
      waiting.push_back(i);
    };
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!is_assertion(nodes_[i].name)) keep(i);
    while (!waiting.empty()) {
      const onnx::node& n = nodes_[waiting.back()];
      waiting.pop_back();
      for (const std::string& input : n.inputs)
        if (const auto found = by_name_.find(parts_of(input).node); found != by_name_.end()) keep(found->second);
    }
    return kept;
  }
  // Inputs as values; the node that gives one learns that its output is read.
  void link(onnx::node& n, const std::vector<bool>& kept) {
    std::erase_if(n.inputs, [](const std::string& input) { return is_order(input); });
    for (std::string& input : n.inputs) {
      const auto [name, k] = parts_of(input);
      const std::string who = described(n);
      const auto found = by_name_.find(name);
      if (found == by_name_.end() || !kept[found->second]) refuse(who, "no node gives its input '" + input + "'");
      if (k > last_output) refuse(who, "its input '" + input + "' is beyond the outputs that a node has");
      read_[found->second].push_back(k);
      input = output_name(name, k);
    }
  }
  // Outputs that no node reads have no name, except the first one.
  void add(onnx::graph& to, std::size_t i) {
    onnx::node& n = nodes_[i];
    if (n.op_type == "Placeholder") {
      to.inputs.push_back(input_of(n));
    } else if (n.op_type == "Const") {
      const attribute* const v = find_attribute(n, "value");
      if (!v || v->tensors.size() != 1) refuse("node '" + n.name + "'", "a constant has attribute 'value'");
      to.initializers.push_back(v->tensors[0]);
      to.initializers.back().name = n.name;
    } else {
      n.outputs = {n.name};
      for (const std::size_t k : read_[i]) {
        if (k < n.outputs.size() && !n.outputs[k].empty()) continue;
        if (k >= n.outputs.size()) places_ += k + 1 - n.outputs.size(), n.outputs.resize(k + 1);
        if (places_ > most_places) raise(errc::limit, "the nodes of the graph have more outputs than kiln reads");
        n.outputs[k] = output_name(n.name, k);
      }
      to.nodes.push_back(std::move(n));
    }
  }

  static constexpr std::size_t most_places = std::size_t{1} << 20;
  std::vector<onnx::node> nodes_;
  std::unordered_map<std::string_view, std::size_t> by_name_;  // until nodes are moved from
  std::vector<std::vector<std::size_t>> read_;                 // the outputs of each node that others read
  std::size_t places_ = 0;                                     // of outputs beyond the first one
};

}  // namespace

graph_file read_graph(const buffer& given, std::span<const std::string> wanted) {
  if (given.size() == 0) raise(errc::malformed, "the graph is empty");
  const buffer file = binary_form(given, text_message::graph);
  graph_def graph = read_graph_def({file.data(), file.size()}, file);
  raise_control_flow(graph);
  set_tables(graph, graph.nodes);
  function_library functions(graph);
  graph_file out = named_nodes(std::move(graph.nodes)).file(functions, wanted);
  out.functions = functions.take();
  return out;
}

}  // namespace kiln::tensorflow
