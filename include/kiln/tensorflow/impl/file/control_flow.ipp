#include "kiln/tensorflow/impl/file/control_flow.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "kiln/core/error.hpp"

// A condition of TensorFlow 1 is dataflow: Switch sends a value to one of its outputs, and Merge takes the one that
// arrives. What stands between becomes a function, for each Merge.
namespace kiln::tensorflow {

namespace {

bool is_switch(const onnx::node* n) { return n && (n->op_type == "Switch" || n->op_type == "RefSwitch"); }
bool is_merge(const onnx::node* n) { return n && (n->op_type == "Merge" || n->op_type == "RefMerge"); }

// Where the way back from a value ends: outputs of Switch nodes, and the predicate of each.
struct arrival {
  std::string predicate;
  std::size_t side;  ///< 1 for the output of a true predicate
  friend bool operator==(const arrival&, const arrival&) = default;
};

class condition_raiser {
 public:
  condition_raiser(node_table& table, graph_def& graph) : table_(table), graph_(graph) {}

  void run() {
    std::vector<std::string> merges;
    for (const onnx::node& n : table_.nodes())
      if (is_merge(&n)) merges.push_back(n.name);
    if (merges.empty()) return;
    for (const std::string& m : merges) raise_merge(m);
    std::unordered_set<std::string> gone, predicates;
    for (const onnx::node& n : table_.nodes()) {
      if (!is_switch(&n) || n.inputs.size() < 2 || !raised_.contains(table_.source(n.inputs[1]))) continue;
      gone.insert(n.name);
      for (const onnx::node* p = table_.giver(n.inputs[1]);
           p && p->op_type == "Identity" && !p->inputs.empty() && predicates.insert(p->name).second;)
        p = table_.giver(p->inputs[0]);
    }
    table_.remove(gone);
    remove_unread(predicates);
  }

 private:
  // Conditions within the branches come first.
  void raise_merge(const std::string& name) {
    const onnx::node merge = *table_.giver(name);
    if (!is_merge(&merge)) return;  // it was within another one
    if (!begun_.insert(name).second) raise(errc::unsupported, described(merge) + ": a condition is in itself");
    const nesting depth(nested_, described(merge), "conditions");
    std::vector<std::string> values;
    for (const std::string& input : merge.inputs)
      if (!is_order(input)) values.push_back(input);
    if (values.size() != 2)
      raise(errc::unsupported, described(merge) + ": joins " + std::to_string(values.size()) + " values");
    const std::array<std::vector<arrival>, 2> found{arrivals(values[0]), arrivals(values[1])};
    const std::optional<arrival> first = side_of_first(found);
    if (!first) raise(errc::unsupported, described(merge) + ": no Switch tells its two values apart");
    const std::size_t of_true = first->side ? 0 : 1;
    std::vector<std::string> inputs{first->predicate}, arguments;
    std::array<function_def, 2> branches;  // of false, of true
    for (const std::size_t side : {0u, 1u})
      branches[side] = branch(name, values[side ? of_true : 1 - of_true], first->predicate, side, inputs, arguments);
    if (reads_index(name))
      for (const std::size_t side : {0u, 1u}) add_index(branches[side], side ? of_true : 1 - of_true);
    onnx::node& made = *table_.giver(name);
    made.op_type = "If";
    made.inputs = inputs;
    made.attributes = {function_attribute("then_branch", branches[1].name),
                       function_attribute("else_branch", branches[0].name)};
    for (function_def& f : branches) {
      f.inputs = arguments;
      for (std::size_t k = 0; k < f.outputs.size(); ++k) f.output_names.push_back("out." + std::to_string(k));
      graph_.functions.push_back(std::move(f));
    }
    raised_.insert(first->predicate);
  }

  // The Switch outputs that a value comes from; those of order only, if there are no others.
  std::vector<arrival> arrivals(const std::string& value) {
    std::vector<arrival> out = arrivals(value, false);
    return out.empty() ? arrivals(value, true) : out;
  }
  std::vector<arrival> arrivals(const std::string& value, bool by_order) {
    std::vector<arrival> out;
    std::unordered_set<std::string> seen;
    std::vector<std::string> waiting{value};
    while (!waiting.empty()) {
      std::string at = std::move(waiting.back());
      waiting.pop_back();
      if (is_order(at)) at.erase(0, 1);
      const output_ref r = parts_of(at);
      const std::string name(r.node);
      if (is_merge(table_.giver(at))) raise_merge(name);
      const onnx::node* const n = table_.giver(at);
      if (!n) continue;
      if (is_switch(n)) {
        if (n->inputs.size() < 2) raise(errc::malformed, described(*n) + ": it has a value and a predicate");
        const arrival a{table_.source(n->inputs[1]), r.k};
        if (std::find(out.begin(), out.end(), a) == out.end()) out.push_back(a);
        continue;
      }
      if (!seen.insert(name).second) continue;
      for (const std::string& input : n->inputs)
        if (by_order || !is_order(input)) waiting.push_back(input);
    }
    return out;
  }
  // The predicate, and where the first value stands: a predicate that sends the two to different sides.
  static std::optional<arrival> side_of_first(const std::array<std::vector<arrival>, 2>& found) {
    for (const arrival& a : found[0])
      for (const arrival& b : found[1])
        if (a.predicate == b.predicate && a.side != b.side) return a;
    if (found[1].empty() && found[0].size() == 1) return found[0][0];
    if (found[0].empty() && found[1].size() == 1) return arrival{found[1][0].predicate, 1 - found[1][0].side};
    return std::nullopt;
  }

  // What a value needs after the Switch nodes of the predicate, as a function. What they switch, and what needs none of
  // them, is an argument.
  function_def branch(const std::string& merge, const std::string& value, const std::string& predicate,
                      std::size_t side, std::vector<std::string>& inputs, std::vector<std::string>& arguments) {
    function_def f;
    f.name = merge + (side ? "/true#" : "/false#") + std::to_string(graph_.functions.size());
    argument_names named;
    const auto capture = [&](const std::string& inside, const std::string& outside) {
      const auto known = std::find(inputs.begin() + 1, inputs.end(), outside);
      if (known == inputs.end()) {
        arguments.push_back("branch." + std::to_string(arguments.size()));
        named.emplace(inside, arguments.back());
        inputs.push_back(outside);
      } else {
        named.emplace(inside, arguments[static_cast<std::size_t>(known - inputs.begin()) - 1]);
      }
    };
    std::unordered_map<std::string, bool> within;
    depends(value, predicate, within);
    std::unordered_set<std::string> seen;
    std::vector<std::string> waiting{value};
    while (!waiting.empty()) {
      const output_ref r = parts_of(waiting.back());
      const std::string name(r.node), full = output_name(r.node, r.k);
      waiting.pop_back();
      const onnx::node* const n = table_.giver(name);
      if (!n || named.contains(full)) continue;
      if (is_switch(n)) {
        capture(full, table_.source(n->inputs[1]) == predicate ? n->inputs[0] : full);
      } else if (!within[name]) {
        if (n->op_type != "Const") capture(full, full);
      } else if (seen.insert(name).second) {
        for (const std::string& input : n->inputs)
          if (!is_order(input)) waiting.push_back(input);
      }
    }
    std::unordered_set<std::string> added;
    add_needed(f, table_, value, named, added, [](const std::string&) {});
    return f;
  }
  // Which nodes below a value read an output of the predicate's Switch nodes.
  void depends(const std::string& value, const std::string& predicate, std::unordered_map<std::string, bool>& within) {
    struct visit {
      std::string node;
      std::size_t next = 0;
    };
    const auto begin = [&](std::string_view at) {
      const std::string name(parts_of(at).node);
      within.emplace(name, false);
      return visit{name};
    };
    std::vector<visit> stack{begin(value)};
    while (!stack.empty()) {
      visit& v = stack.back();
      const onnx::node* const n = table_.giver(v.node);
      if (!n || is_switch(n) || v.next == n->inputs.size()) {
        const bool own = is_switch(n) ? table_.source(n->inputs[1]) == predicate : within[v.node];
        within[v.node] = own;
        stack.pop_back();
        if (own && !stack.empty()) within[stack.back().node] = true;
        continue;
      }
      const std::string& input = n->inputs[v.next++];
      if (is_order(input)) continue;
      const auto known = within.find(std::string(parts_of(input).node));
      if (known == within.end())
        stack.push_back(begin(input));
      else if (known->second)
        within[v.node] = true;
    }
  }

  // Other names of predicates, which only Switch nodes read.
  void remove_unread(const std::unordered_set<std::string>& names) {
    std::unordered_map<std::string, std::size_t> reads;
    for (const onnx::node& n : table_.nodes())
      for (const std::string& input : n.inputs)
        if (!is_order(input)) ++reads[std::string(parts_of(input).node)];
    std::unordered_set<std::string> unread;
    for (const std::string& name : names)
      for (const onnx::node* n = table_.giver(name);
           n && names.contains(n->name) && reads[n->name] == 0 && unread.insert(n->name).second;) {
        --reads[std::string(parts_of(n->inputs[0]).node)];
        n = table_.giver(n->inputs[0]);
      }
    table_.remove(unread);
  }

  bool reads_index(const std::string& merge) {
    const std::string index = output_name(merge, 1);
    table_.spend(table_.nodes().size() / 16);
    for (const onnx::node& n : table_.nodes())
      if (std::find(n.inputs.begin(), n.inputs.end(), index) != n.inputs.end()) return true;
    return false;
  }
  static void add_index(function_def& f, std::size_t number) {
    onnx::node index;
    index.name = "branch.index";
    index.domain = "tensorflow";
    index.op_type = "Const";
    onnx::attribute value;
    value.name = "value";
    value.kind = onnx::attribute_kind::tensor;
    value.tensors.emplace_back();
    value.tensors[0].type = onnx::element::i32;
    value.tensors[0].value = literal::scalar(dtype::i32, static_cast<std::int64_t>(number));
    index.attributes = {std::move(value)};
    f.nodes.push_back(std::move(index));
    f.outputs.push_back("branch.index");
  }

  node_table& table_;
  graph_def& graph_;
  std::unordered_set<std::string> begun_, raised_;
  std::size_t nested_ = 0;
};

bool has_control_flow(const std::vector<onnx::node>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const onnx::node& n) {
    return is_merge(&n) || n.op_type == "Enter" || n.op_type == "RefEnter";
  });
}
// Functions that are added go to the end of the graph's.
void raise_in(std::vector<onnx::node>& nodes, graph_def& graph, step_budget& budget) {
  if (!has_control_flow(nodes)) return;
  by_name(nodes);  // each has a name of its own
  node_table table(nodes, budget);
  raise_loops(table, graph);
  condition_raiser(table, graph).run();
}

}  // namespace

void raise_control_flow(graph_def& graph) {
  std::size_t all = graph.nodes.size();
  for (const function_def& f : graph.functions) all += f.nodes.size();
  step_budget budget((1u << 22) + 256 * all);
  raise_in(graph.nodes, graph, budget);
  for (std::size_t i = 0; i < graph.functions.size(); ++i) {
    std::vector<onnx::node> nodes = std::move(graph.functions[i].nodes);
    try {
      raise_in(nodes, graph, budget);
    } catch (const error& e) {  // which matters only if it is called
      graph.functions[i].fault = "cannot be called: " + e.message();
    }
    graph.functions[i].nodes = std::move(nodes);
  }
}

}  // namespace kiln::tensorflow
