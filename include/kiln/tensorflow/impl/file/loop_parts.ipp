#include "kiln/tensorflow/impl/file/loop_parts.hpp"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "kiln/tensorflow/impl/file/message.hpp"

namespace kiln::tensorflow {

namespace {

// A function's nodes and arguments by name.
class reader {
 public:
  explicit reader(const function_def& f) : f_(f), nodes_(by_name(f.nodes)) {
    for (std::size_t i = 0; i < f.inputs.size(); ++i) arguments_.emplace(f.inputs[i], static_cast<std::int64_t>(i));
    find_sources();
    reads_of_arguments_.resize(f.inputs.size());
    for (const onnx::node& n : f.nodes)
      if (n.op_type != "Identity")
        for (const std::string& input : n.inputs) {
          const source s = is_order(input) ? source{} : source_of(input);
          if (s.argument >= 0) ++reads_of_arguments_[static_cast<std::size_t>(s.argument)];
          if (s.node) read_.insert(s.node);
        }
  }

  struct source {
    std::int64_t argument = -1;
    const onnx::node* node = nullptr;  ///< whose first output it is
  };
  /// What a value is, whatever Identity nodes are between.
  source source_of(std::string_view value) const {
    const output_ref r = parts_of(value);
    if (const auto a = arguments_.find(r.node); a != arguments_.end()) return {a->second, nullptr};
    const auto n = nodes_.find(r.node);
    return n == nodes_.end() || r.k != 0 ? source{} : sources_[n->second];
  }
  std::int64_t argument_of(std::string_view value) const { return source_of(value).argument; }
  bool is_one(std::string_view value) const {
    const onnx::node* const n = source_of(value).node;
    const onnx::attribute* const a = n && n->op_type == "Const" ? find_attribute(*n, "value") : nullptr;
    if (!a || a->tensors.size() != 1 || !a->tensors[0].fault.empty()) return false;
    const literal& l = a->tensors[0].value;
    return is_integer(l.get_shape().type) && l.elements() == 1 && l.at<std::int64_t>(0) == 1;
  }
  /// How often nodes read an argument, directly or by other names.
  std::size_t reads_of(std::int64_t argument) const { return reads_of_arguments_[static_cast<std::size_t>(argument)]; }
  /// Whether a node reads what this one gives, directly or by other names.
  bool is_read(const onnx::node& node) const { return read_.contains(&node); }
  /// How many results of the function are this argument, or come from this node.
  std::size_t results_of(std::int64_t argument, const onnx::node& node) const {
    std::size_t count = 0;
    for (const std::string& output : f_.outputs) {
      const source s = source_of(output);
      count += s.argument == argument || s.node == &node;
    }
    return count;
  }
  /// The arguments that a value depends on.
  std::vector<std::int64_t> arguments_below(const std::string& value) const {
    std::vector<std::int64_t> out;
    std::vector<bool> seen(f_.nodes.size());
    std::vector<std::string_view> waiting{value};
    while (!waiting.empty()) {
      const output_ref r = parts_of(waiting.back());
      waiting.pop_back();
      if (const auto a = arguments_.find(r.node); a != arguments_.end()) out.push_back(a->second);
      const auto n = nodes_.find(r.node);
      if (n == nodes_.end() || seen[n->second]) continue;
      seen[n->second] = true;
      for (const std::string& input : f_.nodes[n->second].inputs)
        if (!is_order(input)) waiting.push_back(input);
    }
    return out;
  }

 private:
  // Of each node's first output; those of a chain of Identity nodes together.
  void find_sources() {
    sources_.resize(f_.nodes.size());
    std::vector<bool> known(f_.nodes.size());
    for (std::size_t i = 0; i < f_.nodes.size(); ++i) {
      std::vector<std::size_t> chain;
      source found;
      for (std::size_t at = i;;) {
        if (known[at]) {
          found = sources_[at];
          break;
        }
        known[at] = true;  // a cycle ends here, without a source
        chain.push_back(at);
        const onnx::node& n = f_.nodes[at];
        found = {-1, &n};
        if (n.op_type != "Identity" || n.inputs.empty()) break;
        found = {};
        const output_ref r = parts_of(n.inputs[0]);
        if (const auto a = arguments_.find(r.node); a != arguments_.end()) {
          found = {a->second, nullptr};
          break;
        }
        const auto next = nodes_.find(r.node);
        if (next == nodes_.end() || r.k != 0) break;
        at = next->second;
      }
      for (const std::size_t c : chain) sources_[c] = found;
    }
  }

  const function_def& f_;
  std::unordered_map<std::string_view, std::size_t> nodes_;
  std::unordered_map<std::string_view, std::int64_t> arguments_;
  std::vector<source> sources_;
  std::vector<std::size_t> reads_of_arguments_;
  std::unordered_set<const onnx::node*> read_;
};

struct loop {
  const function_def &cond, &body;
  reader in_cond, in_body;
  std::vector<bool> is_invariant;

  std::size_t size() const { return body.inputs.size(); }
  bool is_carried(std::size_t k) const { return !is_invariant[k]; }
};

struct counter {
  std::int64_t value;  ///< the number of the value that grows by one
  std::string limit;   ///< a value of the condition
};

bool grows_by_one(const loop& l, std::int64_t k) {
  const onnx::node* const next = l.in_body.source_of(l.body.outputs[static_cast<std::size_t>(k)]).node;
  if (!next || (next->op_type != "Add" && next->op_type != "AddV2") || next->inputs.size() < 2) return false;
  const auto adds = [&](std::size_t own, std::size_t other) {
    return l.in_body.argument_of(next->inputs[own]) == k && l.in_body.is_one(next->inputs[other]);
  };
  return adds(0, 1) || adds(1, 0);
}

// The counters of a condition that only compares some with limits that stay; nothing where it does more.
std::optional<std::vector<counter>> counters_of(const loop& l) {
  std::vector<counter> out;
  std::vector<std::string> waiting{l.cond.outputs[0]};
  for (std::size_t at = 0; at < waiting.size(); ++at) {
    const onnx::node* const n = l.in_cond.source_of(waiting[at]).node;
    if (!n || n->inputs.size() < 2 || waiting.size() > 64) return std::nullopt;
    if (n->op_type == "LogicalAnd") {
      waiting.insert(waiting.end(), n->inputs.begin(), n->inputs.begin() + 2);
      continue;
    }
    const std::int64_t k = l.in_cond.argument_of(n->inputs[0]);
    if (n->op_type != "Less" || k < 0 || !grows_by_one(l, k)) return std::nullopt;
    for (const std::int64_t a : l.in_cond.arguments_below(n->inputs[1]))
      if (!l.is_invariant[static_cast<std::size_t>(a)]) return std::nullopt;
    out.push_back({k, n->inputs[1]});
  }
  return out;
}

// A list that the body gives one item each time.
struct collected_list {
  std::int64_t list, at;
  std::string item;
};

std::vector<collected_list> collected_lists(const loop& l) {
  std::vector<collected_list> out;
  for (std::size_t k = 0; k < l.size(); ++k) {
    const onnx::node* const set = l.in_body.source_of(l.body.outputs[k]).node;
    if (!l.is_carried(k) || !set) continue;
    const bool is_array = set->op_type == "TensorArrayWriteV3";
    if ((!is_array && set->op_type != "TensorListSetItem") || set->inputs.size() < (is_array ? 4u : 3u)) continue;
    const auto own = static_cast<std::int64_t>(k);
    const std::int64_t at = l.in_body.argument_of(set->inputs[1]);
    if (l.in_body.argument_of(set->inputs[is_array ? 3 : 0]) == own && at >= 0 && grows_by_one(l, at) &&
        l.in_body.reads_of(own) == 1 && l.in_cond.reads_of(own) == 0 && !l.in_body.is_read(*set) &&
        l.in_body.results_of(own, *set) == 1)
      out.push_back({own, at, set->inputs[2]});
  }
  return out;
}

// A loop's body as the importer runs it: `counts` without a condition. `results` are the numbers of what the function
// gives for each carried value and for what is collected.
onnx::graph body_graph(const loop& l, const function_def& body, const std::vector<std::int64_t>& carried,
                       const std::vector<std::int64_t>& results, bool counts) {
  onnx::graph g;
  g.name = body.name;
  g.inputs = {tensor_named("iteration"), tensor_named("again")};
  for (const std::int64_t k : carried) g.inputs.push_back(tensor_named("arg." + std::to_string(k)));
  g.nodes = {call_of(body, results)};
  for (std::size_t k = 0; k < l.size(); ++k) {
    std::string& input = g.nodes[0].inputs[k];
    if (!l.is_carried(k))
      g.inputs.push_back(tensor_named(input));
    else if (std::find(carried.begin(), carried.end(), static_cast<std::int64_t>(k)) == carried.end())
      input.clear();  // a list that the loop collects
  }
  if (!counts) {
    const std::int64_t first = 0;
    onnx::node next = call_of(l.cond, {&first, 1});
    for (const std::int64_t k : carried) next.inputs[static_cast<std::size_t>(k)] = "result." + std::to_string(k);
    next.outputs = {"next"};
    g.nodes.push_back(std::move(next));
  }
  g.outputs.push_back(tensor_named(counts ? "again" : "next"));
  for (const std::int64_t k : results) g.outputs.push_back(tensor_named("result." + std::to_string(k)));
  return g;
}

std::vector<std::int64_t> carried_numbers(const loop& l, const std::vector<std::int64_t>& without) {
  std::vector<std::int64_t> out;
  for (std::size_t k = 0; k < l.size(); ++k)
    if (l.is_carried(k) && std::find(without.begin(), without.end(), static_cast<std::int64_t>(k)) == without.end())
      out.push_back(static_cast<std::int64_t>(k));
  return out;
}

void write_counters(onnx::node& n, const loop& l, const std::vector<counter>& counters, function_library& library) {
  std::vector<std::string> limits;
  std::vector<std::int64_t> values, numbers;
  for (const counter& c : counters) {
    numbers.push_back(static_cast<std::int64_t>(values.size()));
    values.push_back(c.value);
    limits.push_back(c.limit);
  }
  const function_def& added = library.add_copy(l.cond, l.cond.name + "#limits of " + l.body.name, std::move(limits));
  library.use(added, n);
  set_graphs(n, "limits", {graph_of_call(added, numbers)});
  set_integers(n, "counters", values);
}

void write_collecting(onnx::node& n, const loop& l, const std::vector<collected_list>& lists,
                      function_library& library) {
  std::vector<std::string> outputs = l.body.outputs;
  std::vector<std::int64_t> own, at;
  for (const collected_list& c : lists) {
    own.push_back(c.list);
    at.push_back(c.at);
  }
  const std::vector<std::int64_t> carried = carried_numbers(l, own);
  std::vector<std::int64_t> results = carried;
  for (const collected_list& c : lists) {
    results.push_back(c.list);  // in the place of the list
    outputs[static_cast<std::size_t>(c.list)] = c.item;
  }
  const function_def& added = library.add_copy(l.body, l.body.name + "#items of " + l.cond.name, std::move(outputs));
  library.use(added, n);
  set_graphs(n, "collecting", {body_graph(l, added, carried, results, true)});
  set_integers(n, "collected", own);
  set_integers(n, "collected_at", at);
}

}  // namespace

void write_loop(onnx::node& n, const function_def& cond, const function_def& body, function_library& library) {
  const std::size_t size = n.inputs.size();
  for (const function_def* f : {&cond, &body})
    if (f->inputs.size() != size)
      refuse(described(n), "function '" + f->name + "' takes " + std::to_string(f->inputs.size()) +
                               " inputs, the loop has " + std::to_string(size) + " values");
  if (body.outputs.size() != size)
    refuse(described(n), "function '" + body.name + "' gives " + std::to_string(body.outputs.size()) +
                             " values, the loop has " + std::to_string(size));
  if (cond.outputs.size() != 1) refuse(described(n), "function '" + cond.name + "' gives no one condition");
  if (n.outputs.size() > size)
    refuse(described(n), "output " + std::to_string(n.outputs.size() - 1) + " of a loop of " + std::to_string(size) +
                             " values is read");
  library.use(cond, n);
  library.use(body, n);
  library.spend(cond);
  library.spend(body);
  loop l{cond, body, reader(cond), reader(body), std::vector<bool>(size)};
  std::vector<std::int64_t> invariants;
  for (std::size_t k = 0; k < size; ++k)
    if (l.in_body.argument_of(body.outputs[k]) == static_cast<std::int64_t>(k)) {
      l.is_invariant[k] = true;
      invariants.push_back(static_cast<std::int64_t>(k));
    }
  const auto counters = counters_of(l);
  const std::int64_t first = 0;
  const std::vector<std::int64_t> carried = carried_numbers(l, {});
  set_integers(n, "invariants", invariants);
  set_graphs(n, "cond", {graph_of_call(cond, {&first, 1})});
  set_graphs(n, "body", {body_graph(l, body, carried, carried, counters.has_value())});
  if (!counters) return;
  write_counters(n, l, *counters, library);
  if (const auto lists = collected_lists(l); !lists.empty()) write_collecting(n, l, lists, library);
}

}  // namespace kiln::tensorflow
