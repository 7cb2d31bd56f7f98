#include "kiln/tensorflow/impl/file/functions.hpp"

#include <algorithm>
#include <unordered_set>

#include "kiln/tensorflow/impl/file/loop_parts.hpp"
#include "kiln/tensorflow/impl/file/message.hpp"
#include "kiln/tensorflow/import.hpp"

namespace kiln::tensorflow {

namespace {

// Operators that change what the next read, or run, sees.
bool writes_variable(std::string_view op_type) {
  constexpr std::string_view ops[] = {"Assign",
                                      "AssignAdd",
                                      "AssignAddVariableOp",
                                      "AssignSub",
                                      "AssignSubVariableOp",
                                      "AssignVariableOp",
                                      "AssignVariableXlaConcatND",
                                      "CountUpTo",
                                      "LookupTableInsert",
                                      "LookupTableInsertV2",
                                      "LookupTableRemoveV2",
                                      "ResourceCountUpTo",
                                      "ResourceStridedSliceAssign",
                                      "ScatterAdd",
                                      "ScatterDiv",
                                      "ScatterMax",
                                      "ScatterMin",
                                      "ScatterMul",
                                      "ScatterNdAdd",
                                      "ScatterNdMax",
                                      "ScatterNdMin",
                                      "ScatterNdSub",
                                      "ScatterNdUpdate",
                                      "ScatterSub",
                                      "ScatterUpdate",
                                      "StridedSliceAssign"};
  constexpr std::string_view families[] = {"Apply", "ResourceApply", "ResourceScatter", "ResourceSparseApply",
                                           "SparseApply"};
  return std::find(std::begin(ops), std::end(ops), op_type) != std::end(ops) ||
         std::any_of(std::begin(families), std::end(families),
                     [&](std::string_view f) { return op_type.starts_with(f); });
}

// The nodes that values need, through what they read and, if asked, through what comes before them by order only.
class needed_nodes {
 public:
  needed_nodes(const function_def& f, const std::unordered_map<std::string_view, std::size_t>& nodes)
      : f_(f), nodes_(nodes), arguments_(f.inputs.begin(), f.inputs.end()) {}

  std::vector<bool> of(bool with_order) const {
    std::vector<bool> reached(f_.nodes.size());
    std::vector<std::size_t> waiting;
    const auto reach = [&](const std::string& value) {
      const std::string_view name = is_order(value) ? std::string_view(value).substr(1) : parts_of(value).node;
      if ((is_order(value) && !with_order) || is_argument(value)) return;
      const auto found = nodes_.find(name);
      if (found == nodes_.end() || reached[found->second]) return;
      reached[found->second] = true;
      waiting.push_back(found->second);
    };
    for (const std::string& v : f_.outputs) reach(v);
    if (with_order)
      for (const std::string& v : f_.ordered) reach(v);
    while (!waiting.empty()) {
      const onnx::node& n = f_.nodes[waiting.back()];
      waiting.pop_back();
      for (const std::string& v : n.inputs) reach(v);
    }
    return reached;
  }
  bool is_argument(std::string_view value) const {
    const output_ref r = parts_of(value);
    return arguments_.contains(r.k ? value : r.node);
  }

 private:
  const function_def& f_;
  const std::unordered_map<std::string_view, std::size_t>& nodes_;
  std::unordered_set<std::string_view> arguments_;
};

std::string function_of(const onnx::node& n, std::string_view attribute) {
  const onnx::attribute* const a = find_attribute(n, attribute);
  if (!a || a->text.empty()) refuse(described(n), "attribute '" + std::string(attribute) + "' names no function");
  return a->text;
}

// Numbers of the results of a node that others read; the first one always is among them.
std::vector<std::int64_t> read_outputs(const onnx::node& n) {
  std::vector<std::int64_t> out;
  for (std::size_t k = 0; k < n.outputs.size(); ++k)
    if (!n.outputs[k].empty()) out.push_back(static_cast<std::int64_t>(k));
  return out;
}

void check_inputs(const onnx::node& n, std::size_t given, const function_def& f) {
  if (given != f.inputs.size())
    refuse(described(n), "function '" + f.name + "' takes " + std::to_string(f.inputs.size()) + " inputs, found " +
                             std::to_string(given));
}

onnx::attribute& attribute_of(onnx::node& n, std::string_view name) {
  std::erase_if(n.attributes, [&](const onnx::attribute& a) { return a.name == name; });
  n.attributes.emplace_back();
  n.attributes.back().name = name;
  return n.attributes.back();
}

}  // namespace

std::vector<bool> needed_by(const function_def& f, bool with_order) {
  const auto nodes = by_name(f.nodes);
  return needed_nodes(f, nodes).of(with_order);
}

onnx::value_info tensor_named(std::string name) {
  onnx::value_info v;
  v.name = std::move(name);
  v.kind = onnx::value_kind::tensor;
  return v;
}
void set_graphs(onnx::node& n, std::string_view name, std::vector<onnx::graph> graphs) {
  onnx::attribute& a = attribute_of(n, name);
  a.kind = onnx::attribute_kind::graph;
  a.graphs = std::move(graphs);
}
void set_integers(onnx::node& n, std::string_view name, std::vector<std::int64_t> numbers) {
  onnx::attribute& a = attribute_of(n, name);
  a.kind = onnx::attribute_kind::integers;
  a.integers = std::move(numbers);
}

onnx::node call_of(const function_def& f, std::span<const std::int64_t> results) {
  onnx::node call;
  call.name = f.name;
  call.domain = function_domain;
  call.op_type = f.name;
  for (std::size_t i = 0; i < f.inputs.size(); ++i) call.inputs.push_back("arg." + std::to_string(i));
  for (const std::int64_t k : results) {
    call.outputs.resize(std::max(call.outputs.size(), static_cast<std::size_t>(k) + 1));
    call.outputs[static_cast<std::size_t>(k)] = "result." + std::to_string(k);
  }
  return call;
}
onnx::graph graph_of_call(const function_def& f, std::span<const std::int64_t> results) {
  onnx::graph g;
  g.name = f.name;
  g.nodes = {call_of(f, results)};
  for (const std::string& input : g.nodes[0].inputs) g.inputs.push_back(tensor_named(input));
  for (const std::int64_t k : results) g.outputs.push_back(tensor_named("result." + std::to_string(k)));
  return g;
}

function_library::function_library(const graph_def& g) {
  left_ = std::size_t{1} << 24;
  for (const function_def& f : g.functions) {
    if (!functions_.emplace(f.name, &f).second) refuse("function '" + f.name + "'", "another one has this name");
    left_ += 16 * bytes_of(f);
  }
}

const function_def& function_library::find(const std::string& name, const onnx::node& caller) const {
  const auto found = functions_.find(name);
  if (found == functions_.end()) refuse(described(caller), "the graph has no function '" + name + "'");
  if (!found->second->fault.empty())
    raise(errc::unsupported, described(caller) + ": function '" + name + "' " + found->second->fault);
  return *found->second;
}
const function_def& function_library::add(function_def f) {
  if (const auto found = functions_.find(f.name); found != functions_.end()) return *found->second;
  added_.push_back(std::move(f));
  functions_.emplace(added_.back().name, &added_.back());
  return added_.back();
}
const function_def& function_library::add_copy(const function_def& f, std::string name,
                                               std::vector<std::string> outputs) {
  if (const auto found = functions_.find(name); found != functions_.end()) return *found->second;
  spend(f);
  function_def copy = f;
  copy.name = std::move(name);
  copy.outputs = std::move(outputs);
  return add(std::move(copy));
}

// About what a copy of it takes; constants share their bytes.
std::size_t function_library::bytes_of(const function_def& f) {
  const auto [known, is_new] = bytes_.emplace(&f, 0);
  if (!is_new) return known->second;
  std::size_t n = 256 + f.name.size() + 64 * (f.inputs.size() + f.outputs.size());
  for (const onnx::node& node : f.nodes) {
    n += 256 + node.name.size() + node.op_type.size();
    for (const std::string& input : node.inputs) n += 32 + input.size();
    for (const onnx::attribute& a : node.attributes) {
      n += 256 + a.name.size() + a.text.size() + 8 * (a.integers.size() + a.reals.size());
      for (const std::string& text : a.texts) n += 32 + text.size();
    }
  }
  return known->second = n;
}
void function_library::spend(const function_def& f) {
  const std::size_t n = bytes_of(f);
  if (n > left_)
    raise(errc::limit, "function '" + f.name + "': the loops of the graph read its functions too often for its size");
  left_ -= n;
}

void function_library::use(const function_def& f, const onnx::node& caller) {
  constexpr std::size_t most_nested = 256;
  const auto [at, is_new] = known_.emplace(f.name, progress::begun);
  if (!is_new && at->second == progress::begun)
    raise(errc::unsupported, described(caller) + ": function '" + f.name + "' calls itself");
  if (!is_new) return;
  if (++nested_ > most_nested)
    raise(errc::limit, described(caller) + ": calls are nested deeper than " + std::to_string(most_nested));
  used_.push_back(write(f));
  --nested_;
  known_[f.name] = progress::done;
}

void function_library::call(onnx::node& n, const std::string& name) {
  const function_def& f = find(name, n);
  check_inputs(n, n.inputs.size(), f);
  if (n.outputs.size() > f.outputs.size()) {
    if (f.outputs.empty() && n.outputs.size() == 1)
      n.outputs.clear();
    else
      refuse(described(n), "function '" + name + "' gives " + std::to_string(f.outputs.size()) + " values, number " +
                               std::to_string(n.outputs.size() - 1) + " is read");
  }
  use(f, n);
  n.domain = function_domain;
  n.op_type = name;
}

void function_library::write_branch(onnx::node& n, const std::string& name, std::span<const std::int64_t> results,
                                    std::vector<onnx::graph>& to) {
  const function_def& f = find(name, n);
  check_inputs(n, n.inputs.size() - 1, f);
  if (n.outputs.size() > f.outputs.size())
    refuse(described(n), "function '" + f.name + "' gives " + std::to_string(f.outputs.size()) + " values, expected " +
                             std::to_string(n.outputs.size()));
  use(f, n);
  to.push_back(graph_of_call(f, results));
}

void function_library::write_branches(onnx::node& n) {
  if (n.inputs.empty()) refuse(described(n), "it has no condition");
  const std::vector<std::int64_t> results = read_outputs(n);
  for (const std::string_view name : {"then_branch", "else_branch"}) {
    std::vector<onnx::graph> graphs;
    write_branch(n, function_of(n, name), results, graphs);
    set_graphs(n, name, std::move(graphs));
  }
  set_integers(n, "outputs", results);
}

void function_library::write_cases(onnx::node& n) {
  constexpr std::size_t most = 1024;
  if (n.inputs.empty()) refuse(described(n), "it has no index of a branch");
  const onnx::attribute* const a = find_attribute(n, "branches");
  if (!a || a->kind != onnx::attribute_kind::other || a->texts.empty())
    refuse(described(n), "attribute 'branches' names no functions");
  const std::vector<std::string> names = a->texts;
  if (names.size() > most)
    raise(errc::limit, described(n) + ": expected at most " + std::to_string(most) + " branches, found " +
                           std::to_string(names.size()));
  const std::vector<std::int64_t> results = read_outputs(n);
  std::vector<onnx::graph> graphs;
  for (const std::string& name : names) write_branch(n, name, results, graphs);
  set_graphs(n, "branches", std::move(graphs));
  set_integers(n, "outputs", results);
}

void function_library::write_calls(onnx::node& n) {
  if (n.domain != domain) return;
  if (n.op_type == "PartitionedCall" || n.op_type == "StatefulPartitionedCall") return call(n, function_of(n, "f"));
  if (functions_.contains(n.op_type)) return call(n, std::string(n.op_type));
  if (n.op_type == "If" || n.op_type == "StatelessIf") return write_branches(n);
  if (n.op_type == "Case" || n.op_type == "StatelessCase") return write_cases(n);
  if (n.op_type == "While" || n.op_type == "StatelessWhile")
    write_loop(n, find(function_of(n, "cond"), n), find(function_of(n, "body"), n), *this);
}

// What runs before a read, if only by order, must write nothing: neither a node nor a function that one calls.
void function_library::refuse_writers(const function_def& first) {
  std::vector<const function_def*> waiting;
  const auto visit = [&](const function_def& f) {
    if (write_nothing_.insert(&f).second) waiting.push_back(&f);
  };
  const auto visit_named = [&](std::string_view name) {
    if (const auto found = functions_.find(name); found != functions_.end()) visit(*found->second);
  };
  visit(first);
  while (!waiting.empty()) {
    const function_def& f = *waiting.back();
    waiting.pop_back();
    const std::vector<bool> runs = needed_by(f, true);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const onnx::node& n = f.nodes[i];
      if (!runs[i]) continue;
      if (!functions_.contains(n.op_type) && writes_variable(n.op_type))
        raise(errc::unsupported, described(n) + " of function '" + f.name +
                                     "': writes a variable or table, and a program has constants in their place");
      visit_named(n.op_type);
      for (const onnx::attribute& a : n.attributes) {
        if (a.kind != onnx::attribute_kind::other) continue;  // it names no function
        visit_named(a.text);
        for (const std::string& text : a.texts) visit_named(text);
      }
    }
  }
}

onnx::function function_library::write(const function_def& f) {
  onnx::function out;
  out.domain = function_domain;
  out.name = f.name;
  out.inputs = f.inputs;
  out.defaults = f.defaults;
  const auto nodes = by_name(f.nodes);
  const needed_nodes needs(f, nodes);
  const std::vector<bool> needed = needs.of(false);
  std::vector<std::vector<std::string>> outputs(f.nodes.size());
  // the name of a value, whose node learns that it is read
  const auto value_of = [&](const std::string& written, const std::string& reader) {
    const auto [name, k] = parts_of(written);
    std::string value = output_name(name, k);
    if (needs.is_argument(value)) return value;
    const auto found = nodes.find(name);
    if (found == nodes.end()) refuse(reader, "no node gives its input '" + written + "'");
    if (k > last_output) refuse(reader, "its input '" + written + "' is beyond the outputs that a node has");
    auto& to = outputs[found->second];
    if (to.size() <= k) to.resize(k + 1);
    to[k] = value;
    return value;
  };
  std::vector<onnx::node> kept;
  std::vector<std::size_t> places;
  refuse_writers(f);
  for (std::size_t i = 0; i < f.nodes.size(); ++i) {
    if (!needed[i]) continue;
    onnx::node n = f.nodes[i];
    std::erase_if(n.inputs, [](const std::string& input) { return is_order(input); });
    for (std::string& input : n.inputs) input = value_of(input, "function '" + f.name + "', " + described(n));
    kept.push_back(std::move(n));
    places.push_back(i);
  }
  for (const std::string& value : f.outputs) out.outputs.push_back(value_of(value, "function '" + f.name + "'"));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    kept[i].outputs = std::move(outputs[places[i]]);
    write_calls(kept[i]);
  }
  out.nodes = std::move(kept);
  return out;
}

}  // namespace kiln::tensorflow
