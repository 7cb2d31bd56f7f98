#include "kiln/tensorflow/impl/file/graph_file.hpp"

#include <algorithm>
#include <unordered_map>

#include "kiln/tensorflow/impl/file/message.hpp"
#include "kiln/tensorflow/impl/file/tensor_message.hpp"
#include "kiln/tensorflow/impl/file/text_format.hpp"
#include "kiln/tensorflow/import.hpp"

namespace kiln::tensorflow {

namespace {

using onnx::attribute, onnx::attribute_kind, onnx::element;

std::int64_t element_number(std::uint64_t type) { return static_cast<std::int64_t>(to_element(type)); }

void read_list(attribute& a, bytes_view message, const std::string& where) {
  a.kind = attribute_kind::integers;  // what an empty list is taken for
  each_field(message, where, [&](const wire_field& f) {
    switch (f.number) {
      case 2:
        a.kind = attribute_kind::texts;
        a.texts.push_back(f.text());
        break;
      case 3:
      case 5:
        each_number(f, where, [&](std::uint64_t n) { a.integers.push_back(static_cast<std::int64_t>(n)); });
        break;
      case 4:
        a.kind = attribute_kind::reals;
        each_real<float>(f, where, [&](float v) { a.reals.push_back(v); });
        break;
      case 6: each_number(f, where, [&](std::uint64_t n) { a.integers.push_back(element_number(n)); }); break;
      default: a.kind = attribute_kind::other;
    }
  });
}

template <class TensorOf>
attribute read_attribute(std::string name, bytes_view message, const std::string& where, TensorOf&& tensor_of) {
  attribute a;
  a.name = std::move(name);
  a.kind = attribute_kind::other;
  each_field(message, where, [&](const wire_field& f) {
    switch (f.number) {
      case 1: read_list(a, f.content, where); break;
      case 2:
        a.kind = attribute_kind::text;
        a.text = f.text();
        break;
      case 3:
      case 5:
        a.kind = attribute_kind::integer;
        a.integer = static_cast<std::int64_t>(f.value);
        break;
      case 4:
        a.kind = attribute_kind::real;
        each_real<float>(f, where, [&](float v) { a.real = v; });
        break;
      case 6:
        a.kind = attribute_kind::integer;
        a.integer = element_number(f.value);
        a.text = type_name(f.value);
        break;
      case 7: {
        const tensor_shape s = read_shape(f.content, where);
        a.kind = s.has_rank ? attribute_kind::integers : attribute_kind::other;
        a.integers = s.lens;
        break;
      }
      case 8: tensor_of(a, f.content); break;
      default: break;
    }
  });
  return a;
}

onnx::node read_node(bytes_view message, std::size_t index, const buffer& file, fill_budget& budget) {
  onnx::node n;
  n.domain = domain;
  std::string where = "node " + std::to_string(index);
  each_field(message, where, [&](const wire_field& f) {
    if (f.number == 1) n.name = f.text();
    if (f.number == 2) n.op_type = f.text();
    if (f.number == 3) n.inputs.push_back(f.text());
  });
  if (n.name.empty() || n.op_type.empty()) refuse(where, "a node has a name and an operator");
  where = "node '" + n.name + "' (" + n.op_type + ")";
  each_field(message, where, [&](const wire_field& f) {
    if (f.number != 5) return;
    std::string key;
    bytes_view held;
    each_field(f.content, where, [&](const wire_field& e) {
      if (e.number == 1) key = e.text();
      if (e.number == 2) held = e.content;
    });
    const std::string at = where + ", attribute '" + key + "'";
    const bool is_value = n.op_type == "Const" && key == "value";  // no other tensor is read
    const auto tensor_of = [&](attribute& a, bytes_view content) {
      if (!is_value) return;
      a.kind = attribute_kind::tensor;
      a.tensors = {read_tensor(content, at, file, budget)};
    };
    n.attributes.push_back(read_attribute(std::move(key), held, at, tensor_of));
  });
  return n;
}

const attribute* find(const onnx::node& n, std::string_view name) {
  for (const attribute& a : n.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

onnx::value_info input_of(const onnx::node& n) {
  onnx::value_info v;
  v.name = n.name;
  v.kind = onnx::value_kind::tensor;
  const attribute* const type = find(n, "dtype");
  if (!type || type->kind != attribute_kind::integer)
    refuse("node '" + n.name + "'", "a placeholder has attribute 'dtype'");
  v.type = static_cast<element>(type->integer);
  if (const attribute* const s = find(n, "shape"); s && s->kind == attribute_kind::integers) {
    v.has_rank = true;
    for (const std::int64_t d : s->integers) v.dims.push_back({d < 0 ? -1 : d, {}});
  }
  return v;
}

// What checks and control flow leave in a frozen graph, and computes nothing.
bool is_assertion(std::string_view name) {
  return name.find("NoOp") != std::string_view::npos || name.find("Assert") != std::string_view::npos;
}

// "n" and 0 of "n" or "n:0"; a name of a node may have no colon.
std::pair<std::string_view, std::size_t> parts_of(std::string_view input) {
  const std::size_t colon = input.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == input.size()) return {input, 0};
  std::size_t k = 0;
  for (const char c : input.substr(colon + 1)) {
    if (c < '0' || c > '9') return {input, 0};
    k = std::min(k * 10 + static_cast<std::size_t>(c - '0'), last_output + 1);
  }
  return {input.substr(0, colon), k};
}
bool is_order(const std::string& input) { return input.starts_with('^'); }

// A graph whose nodes are known by name.
class named_nodes {
 public:
  explicit named_nodes(std::vector<onnx::node> nodes) : nodes_(std::move(nodes)), read_(nodes_.size()) {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!by_name_.emplace(nodes_[i].name, i).second)
        refuse("node '" + nodes_[i].name + "'", "another node has this name");
  }

  graph_file file() {
    graph_file out;
    out.read = read_names();
    const std::vector<bool> kept = kept_nodes();
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (kept[i]) link(nodes_[i], kept);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (kept[i])
        add(out.graph, i);
      else
        ++out.assertions;
    }
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
        out.emplace(is_order(input) ? std::string_view(input).substr(1) : parts_of(input).first);
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
        if (const auto found = by_name_.find(std::string(parts_of(input).first)); found != by_name_.end())
          keep(found->second);
    }
    return kept;
  }
  // Inputs as values; the node that gives one learns that its output is read.
  void link(onnx::node& n, const std::vector<bool>& kept) {
    std::erase_if(n.inputs, is_order);
    for (std::string& input : n.inputs) {
      const auto [name, k] = parts_of(input);
      const std::string who = "node '" + n.name + "' (" + n.op_type + ")";
      const auto found = by_name_.find(std::string(name));
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
      const attribute* const v = find(n, "value");
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
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<std::vector<std::size_t>> read_;  // the outputs of each node that others read
  std::size_t places_ = 0;                      // of outputs beyond the first one
};

}  // namespace

std::string output_name(std::string_view node, std::size_t k) {
  return k ? std::string(node) + ":" + std::to_string(k) : std::string(node);
}

graph_file read_graph(const buffer& given) {
  buffer file = given;
  bytes_view bytes(file.data(), file.size());
  if (bytes.empty()) raise(errc::malformed, "the graph is empty");
  if (begins_as_text(bytes)) {
    const std::string binary = binary_of_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    file = buffer::allocate(binary.size());
    std::memcpy(file.data(), binary.data(), binary.size());
    bytes = {file.data(), file.size()};
  }
  fill_budget budget(file.size());
  std::vector<onnx::node> nodes;
  each_field(bytes, "the graph", [&](const wire_field& f) {
    if (f.number > 5) refuse("the graph", "field " + std::to_string(f.number) + " is none of a GraphDef");
    if (f.number == 1 && f.encoding == wire_encoding::delimited)
      nodes.push_back(read_node(f.content, nodes.size(), file, budget));
  });
  return named_nodes(std::move(nodes)).file();
}

}  // namespace kiln::tensorflow
