#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "kiln/core/error.hpp"
#include "kiln/tensorflow/impl/file/graph_def.hpp"

namespace kiln::tensorflow {

/// Writes the control flow of TensorFlow 1 (Switch, Merge, Enter, Exit, NextIteration, LoopCond) as If and While nodes,
/// whose bodies are functions that it adds. Errors: `unsupported` names a node of another form.
void raise_control_flow(graph_def& graph);

/// Work on a whole graph and its functions, of which a graph of few nodes may ask for much.
class step_budget {
 public:
  explicit step_budget(std::size_t steps) : left_(steps) {}
  /// Errors: `limit`.
  void spend(std::size_t steps) {
    if (steps > left_)
      raise(errc::limit, "the control flow of the graph needs more steps than a graph of its size may");
    left_ -= steps;
  }

 private:
  std::size_t left_;
};

/// One more level of calls that nest, while it lives. Errors: `limit`.
class nesting {
 public:
  nesting(std::size_t& level, const std::string& where, const char* what) : level_(level) {
    if (level >= most) raise(errc::limit, where + ": " + what + " are nested deeper than " + std::to_string(most));
    ++level_;
  }
  ~nesting() { --level_; }
  nesting(const nesting&) = delete;
  nesting& operator=(const nesting&) = delete;

 private:
  static constexpr std::size_t most = 256;
  std::size_t& level_;
};

/// Nodes by name, of which parts become functions.
class node_table {
 public:
  node_table(std::vector<onnx::node>& nodes, step_budget& budget) : nodes_(nodes), budget_(budget) { index(); }

  std::vector<onnx::node>& nodes() { return nodes_; }
  /// The node that gives a value, null where there is none.
  onnx::node* giver(std::string_view value) {
    spend(1);
    const auto found = index_.find(std::string(parts_of(value).node));
    return found == index_.end() ? nullptr : &nodes_[found->second];
  }
  /// A value without the Identity nodes before it.
  std::string source(std::string value) {
    for (;;) {
      const onnx::node* const n = giver(value);
      if (!n || n->op_type != "Identity" || n->inputs.empty() || is_order(n->inputs[0])) break;
      value = n->inputs[0];
    }
    return output_name(parts_of(value).node, parts_of(value).k);
  }
  void add(onnx::node n) {
    index_.emplace(n.name, nodes_.size());
    nodes_.push_back(std::move(n));
  }
  /// Removes nodes by name, and all that read them.
  void remove(const std::unordered_set<std::string>& names) {
    std::unordered_map<std::string_view, std::vector<std::size_t>> readers;
    std::vector<std::size_t> waiting;
    std::vector<bool> gone(nodes_.size());
    const auto drop = [&](std::size_t i) {
      if (!gone[i]) gone[i] = true, waiting.push_back(i);
    };
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (names.contains(nodes_[i].name)) drop(i);
      for (const std::string& input : nodes_[i].inputs)
        if (!is_order(input)) readers[parts_of(input).node].push_back(i);
    }
    while (!waiting.empty()) {
      const std::size_t i = waiting.back();
      waiting.pop_back();
      for (const std::size_t r : readers[nodes_[i].name]) drop(r);
    }
    std::vector<onnx::node> kept;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!gone[i]) kept.push_back(std::move(nodes_[i]));
    nodes_ = std::move(kept);
    index();
  }
  void spend(std::size_t steps) { budget_.spend(steps); }

 private:
  void index() {
    index_.clear();
    for (std::size_t i = 0; i < nodes_.size(); ++i) index_.emplace(nodes_[i].name, i);
  }

  std::vector<onnx::node>& nodes_;
  std::unordered_map<std::string, std::size_t> index_;
  step_budget& budget_;
};

/// Names of values that become arguments of a function.
using argument_names = std::unordered_map<std::string, std::string>;

/// The nodes that a value needs, up to the arguments, as a function's with that one output. `before(node)` is asked for
/// each node first; it may change the table.
template <class Before>
void add_needed(function_def& f, node_table& table, const std::string& output, const argument_names& arguments,
                std::unordered_set<std::string>& seen, Before&& before) {
  const auto named = [&](const std::string& value) {
    const output_ref r = parts_of(value);
    const auto found = arguments.find(output_name(r.node, r.k));
    return found == arguments.end() ? nullptr : &found->second;
  };
  std::vector<std::string> waiting{output};
  while (!waiting.empty()) {
    const std::string value = waiting.back();
    waiting.pop_back();
    const std::string name(parts_of(value).node);
    if (named(value) || !table.giver(value) || seen.contains(name)) continue;
    before(name);
    seen.insert(name);
    table.spend(16);
    onnx::node copy = *table.giver(value);
    std::erase_if(copy.inputs, [](const std::string& input) { return is_order(input); });
    for (std::string& input : copy.inputs) {
      waiting.push_back(input);
      if (const std::string* const a = named(input)) input = *a;
    }
    f.nodes.push_back(std::move(copy));
  }
  const std::string* const a = named(output);
  f.outputs.push_back(a ? *a : output);
}

/// An attribute that names a function.
onnx::attribute function_attribute(std::string name, std::string function);
/// The loops of a list of nodes as While nodes.
void raise_loops(node_table& table, graph_def& graph);

}  // namespace kiln::tensorflow
