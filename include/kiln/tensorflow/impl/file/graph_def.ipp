#include "kiln/tensorflow/impl/file/graph_def.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "kiln/tensorflow/impl/file/graph_file.hpp"
#include "kiln/tensorflow/impl/file/message.hpp"
#include "kiln/tensorflow/import.hpp"

// Messages of graph.proto, node_def.proto, attr_value.proto, function.proto and op_def.proto.
namespace kiln::tensorflow {

namespace {

using onnx::attribute, onnx::attribute_kind, onnx::element;

std::int64_t element_number(std::uint64_t type) { return static_cast<std::int64_t>(to_element(type)); }

// Of a NameAttrList; the attributes that it gives to the function are none in practice.
std::string name_of_function(bytes_view message, const std::string& where) {
  std::string name;
  each_field(message, where, [&](const wire_field& f) {
    if (f.number == 1) name = f.text();
  });
  return name;
}

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
      case 9:
        a.kind = attribute_kind::other;
        a.texts.push_back(name_of_function(f.content, where));
        break;
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
      case 9: a.reference = f.text(); break;
      case 10: a.text = name_of_function(f.content, where); break;
      default: break;
    }
  });
  return a;
}

std::vector<std::string> strings_of(bytes_view tensor, const std::string& where) {
  std::vector<std::string> out;
  each_field(tensor, where, [&](const wire_field& f) {
    if (f.number == 8) out.push_back(f.text());
  });
  return out;
}

onnx::node read_node(bytes_view message, std::size_t index, const std::string& of, const buffer& file,
                     fill_budget& budget) {
  onnx::node n;
  n.domain = domain;
  std::string where = of + "node " + std::to_string(index);
  each_field(message, where, [&](const wire_field& f) {
    if (f.number == 1) n.name = f.text();
    if (f.number == 2) n.op_type = f.text();
    if (f.number == 3) n.inputs.push_back(f.text());
  });
  if (n.name.empty() || n.op_type.empty()) refuse(where, "a node has a name and an operator");
  where = of + "node '" + n.name + "' (" + n.op_type + ")";
  each_field(message, where, [&](const wire_field& f) {
    if (f.number != 5) return;
    auto [key, held] = read_entry(f.content, where);
    const std::string at = where + ", attribute '" + key + "'";
    const bool is_value = n.op_type == "Const" && key == "value";  // no other tensor is read
    const auto tensor_of = [&](attribute& a, bytes_view content) {
      if (!is_value) return;
      a.kind = attribute_kind::tensor;
      a.tensors = {read_tensor(content, at, file, budget)};
      if (a.tensors[0].type == element::string) a.texts = strings_of(content, at);
    };
    n.attributes.push_back(read_attribute(std::move(key), held, at, tensor_of));
  });
  return n;
}

// Operators with several outputs that have names, which the inputs of a function's nodes use. Of all others output k is
// number k of the only one.
struct named_outputs {
  std::string_view op_type;
  std::array<std::string_view, 7> names;
};
constexpr named_outputs several[] = {
    {"_FusedBatchNormEx",
     {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"}},
    {"BlockLSTM", {"i", "cs", "f", "o", "ci", "co", "h"}},
    {"BlockLSTMV2", {"i", "cs", "f", "o", "ci", "co", "h"}},
    {"CombinedNonMaxSuppression", {"nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"}},
    {"FusedBatchNorm", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}},
    {"FusedBatchNormV2", {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}},
    {"FusedBatchNormV3",
     {"y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"}},
    {"GRUBlockCell", {"r", "u", "c", "h"}},
    {"LSTMBlockCell", {"i", "cs", "f", "o", "ci", "co", "h"}},
    {"ListDiff", {"out", "idx"}},
    {"MaxPoolWithArgmax", {"output", "argmax"}},
    {"Merge", {"output", "value_index"}},
    {"NonMaxSuppressionV4", {"selected_indices", "valid_outputs"}},
    {"NonMaxSuppressionV5", {"selected_indices", "selected_scores", "valid_outputs"}},
    {"Qr", {"q", "r"}},
    {"RefSwitch", {"output_false", "output_true"}},
    {"SoftmaxCrossEntropyWithLogits", {"loss", "backprop"}},
    {"SparseSoftmaxCrossEntropyWithLogits", {"loss", "backprop"}},
    {"Svd", {"s", "u", "v"}},
    {"Switch", {"output_false", "output_true"}},
    {"TensorArrayConcatV3", {"value", "lengths"}},
    {"TensorArrayV3", {"handle", "flow"}},
    {"TensorListConcat", {"tensor", "lengths"}},
    {"TensorListConcatV2", {"tensor", "lengths"}},
    {"TensorListPopBack", {"output_handle", "tensor"}},
    {"TopK", {"values", "indices"}},
    {"TopKV2", {"values", "indices"}},
    {"TopKV3", {"values", "indices"}},
    {"Unique", {"y", "idx"}},
    {"UniqueV2", {"y", "idx"}},
    {"UniqueWithCounts", {"y", "idx", "count"}},
};

// Inputs of a function's nodes, `node:output:k`, as those of a graph's.
class output_numbers {
 public:
  explicit output_numbers(const graph_def& g) {
    for (const function_def& f : g.functions) functions_.emplace(f.name, &f);
  }

  void rewrite(function_def& f) const {
    const auto nodes = by_name(f.nodes);
    const auto number = [&](std::string& input) {
      const std::size_t colon = input.find(':');
      if (is_order(input) || colon == std::string::npos) return;
      const std::string_view name = std::string_view(input).substr(0, colon),
                             rest = std::string_view(input).substr(colon + 1);
      const std::size_t second = rest.find(':');
      const auto found = nodes.find(name);
      if (second == std::string_view::npos || found == nodes.end()) return;  // the linker says what is wrong
      const onnx::node& n = f.nodes[found->second];
      const std::string_view output = rest.substr(0, second);
      const std::optional<std::size_t> first = first_of(n.op_type, output);
      if (!first) f.fault = "reads output '" + std::string(output) + "' of " + described(n) + ", which has none such";
      input = output_name(name, parts_of(rest).k + first.value_or(0));
    };
    for (onnx::node& n : f.nodes)
      for (std::string& input : n.inputs) number(input);
    for (std::string& output : f.outputs) number(output);
  }

 private:
  std::optional<std::size_t> first_of(const std::string& op_type, std::string_view output) const {
    const auto place = [&](const auto& names) -> std::optional<std::size_t> {
      const auto found = std::find(names.begin(), names.end(), output);
      if (found == names.end()) return std::nullopt;
      return static_cast<std::size_t>(found - names.begin());
    };
    if (const auto f = functions_.find(op_type); f != functions_.end()) return place(f->second->output_names);
    for (const named_outputs& s : several)
      if (s.op_type == op_type) return place(s.names);
    return 0;
  }
  std::unordered_map<std::string_view, const function_def*> functions_;
};

// OpDef: what a function is called, takes and gives.
void read_signature(function_def& f, bytes_view message, const std::string& where) {
  const auto argument = [&](bytes_view m) {
    std::string name;
    each_field(m, where, [&](const wire_field& a) {
      if (a.number == 1) name = a.text();
      if ((a.number == 5 || a.number == 6) && !a.content.empty()) f.fault = "takes or gives a list of tensors";
    });
    return name;
  };
  each_field(message, where, [&](const wire_field& s) {
    if (s.number == 1) f.name = s.text();
    if (s.number == 2) f.inputs.push_back(argument(s.content));
    if (s.number == 3) f.output_names.push_back(argument(s.content));
    if (s.number != 4) return;
    std::string name;
    bytes_view value;
    each_field(s.content, where, [&](const wire_field& a) {
      if (a.number == 1) name = a.text();
      if (a.number == 3) value = a.content;
    });
    if (!value.empty()) f.defaults.push_back(read_attribute(std::move(name), value, where, [](auto&, auto) {}));
  });
}

function_def read_function(bytes_view message, std::size_t index, const buffer& file, fill_budget& budget) {
  function_def f;
  std::string where = "function " + std::to_string(index);
  std::unordered_map<std::string, std::string> results;
  each_field(message, where, [&](const wire_field& m) {
    if (m.number == 1) read_signature(f, m.content, where);
  });
  if (f.name.empty()) refuse(where, "a function has a name");
  where = "function '" + f.name + "'";
  each_field(message, where, [&](const wire_field& m) {
    if (m.number == 3) f.nodes.push_back(read_node(m.content, f.nodes.size(), where + ", ", file, budget));
    if (m.number != 4 && m.number != 6) return;
    auto [key, value] = read_entry(m.content, where);
    std::string text(reinterpret_cast<const char*>(value.data()), value.size());
    if (m.number == 4)
      results.emplace(std::move(key), std::move(text));
    else
      f.ordered.push_back(std::move(text));
  });
  for (const std::string& name : f.output_names) {
    const auto found = results.find(name);
    if (found == results.end()) refuse(where, "no node gives its output '" + name + "'");
    f.outputs.push_back(found->second);
  }
  return f;
}

}  // namespace

const attribute* find_attribute(const onnx::node& n, std::string_view name) {
  for (const attribute& a : n.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

output_ref parts_of(std::string_view input) {
  const std::size_t colon = input.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == input.size()) return {input, 0};
  std::size_t k = 0;
  for (const char c : input.substr(colon + 1)) {
    if (c < '0' || c > '9') return {input, 0};
    k = std::min(k * 10 + static_cast<std::size_t>(c - '0'), last_output + 1);
  }
  return {input.substr(0, colon), k};
}

std::string output_name(std::string_view node, std::size_t k) {
  return k ? std::string(node) + ":" + std::to_string(k) : std::string(node);
}

std::unordered_map<std::string_view, std::size_t> by_name(const std::vector<onnx::node>& nodes) {
  std::unordered_map<std::string_view, std::size_t> out;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!out.emplace(nodes[i].name, i).second) refuse("node '" + nodes[i].name + "'", "another node has this name");
  return out;
}

graph_def read_graph_def(bytes_view message, const buffer& file) {
  fill_budget budget(file.size());
  graph_def out;
  each_field(message, "the graph", [&](const wire_field& f) {
    if (f.number > 5) refuse("the graph", "field " + std::to_string(f.number) + " is none of a GraphDef");
    if (f.number == 1 && f.encoding == wire_encoding::delimited)
      out.nodes.push_back(read_node(f.content, out.nodes.size(), "", file, budget));
    if (f.number != 2) return;
    each_field(f.content, "the functions", [&](const wire_field& l) {
      if (l.number == 1) out.functions.push_back(read_function(l.content, out.functions.size(), file, budget));
    });
  });
  const output_numbers numbers(out);
  for (function_def& f : out.functions) numbers.rewrite(f);
  return out;
}

}  // namespace kiln::tensorflow
