#include "kiln/tensorflow/impl/file/tables.hpp"

#include <algorithm>
#include <unordered_set>

#include "kiln/tensorflow/impl/attributes.hpp"
#include "kiln/tensorflow/impl/file/tracer.hpp"

namespace kiln::tensorflow {

namespace {

bool is_table(const onnx::node& n) { return n.op_type == "HashTable" || n.op_type == "HashTableV2"; }
bool is_initializer(const onnx::node& n) {
  constexpr std::string_view ops[] = {
      "InitializeTable",   "InitializeTableV2",  "InitializeTableFromTextFile", "InitializeTableFromTextFileV2",
      "LookupTableImport", "LookupTableImportV2"};
  return !n.inputs.empty() && std::find(std::begin(ops), std::end(ops), n.op_type) != std::end(ops);
}

// Which table a node makes: nodes of one shared name make one.
std::string table_of(const onnx::node& n, std::string_view function) {
  const onnx::attribute* const shared = find_attribute(n, "shared_name");
  if (shared && !shared->text.empty()) return "shared " + shared->text;
  return std::string(function) + "/" + n.name;
}

struct contents {
  const onnx::tensor *keys = nullptr, *values = nullptr;
  const char* fault = nullptr;
};

bool are_equal(const onnx::tensor& a, const onnx::tensor& b) {
  if (&a == &b) return true;
  return a.type == b.type && a.value == b.value;
}

// Walks through the graph and what it calls, with the arguments of each call.
class initializers {
 public:
  explicit initializers(const graph_def& g) : main_(g.nodes) {
    for (const function_def& f : g.functions) functions_.emplace(f.name, &f);
    find_holders(g);
    walk({&main_, nullptr, nullptr, nullptr}, g.nodes, 0);
  }

  const contents* find(const std::string& table) const {
    const auto at = found_.find(table);
    return at == found_.end() ? nullptr : &at->second;
  }

 private:
  struct scope {
    const tracer* values;
    const function_def* function;
    const onnx::node* call;
    const scope* caller;
  };
  struct thing {
    std::string table;                       // the one that the value is a handle of
    const onnx::tensor* constant = nullptr;  // or its value
  };

  const function_def* called(const onnx::node& n) const {
    const onnx::attribute* const f = find_attribute(n, "f");
    const auto at = functions_.find(f && n.op_type.ends_with("PartitionedCall") ? f->text : n.op_type);
    return at == functions_.end() ? nullptr : at->second;
  }
  // Functions with an initializer in them, or in what they call.
  void find_holders(const graph_def& g) {
    std::unordered_map<const function_def*, std::vector<const function_def*>> callers;
    std::vector<const function_def*> waiting;
    for (const function_def& f : g.functions) {
      if (std::any_of(f.nodes.begin(), f.nodes.end(), is_initializer) && holders_.insert(&f).second)
        waiting.push_back(&f);
      for (const onnx::node& n : f.nodes)
        if (const function_def* const other = called(n)) callers[other].push_back(&f);
    }
    while (!waiting.empty()) {
      const function_def* const f = waiting.back();
      waiting.pop_back();
      for (const function_def* const caller : callers[f])
        if (holders_.insert(caller).second) waiting.push_back(caller);
    }
  }
  const tracer& values_of(const function_def& f) { return tracers_.try_emplace(&f, f.nodes, f.inputs).first->second; }

  thing resolve(const scope& in, std::string_view value, int depth = 0) {
    if (depth == most_nested || is_order(value)) return {};
    const tracer::source s = in.values->trace(value);
    if (s.is_argument) {
      if (!in.call || s.argument >= in.call->inputs.size()) return {};
      return resolve(*in.caller, in.call->inputs[s.argument], depth + 1);
    }
    if (!s.node) return {};
    if (is_table(*s.node)) return {table_of(*s.node, in.function ? in.function->name : ""), nullptr};
    if (s.node->op_type == "Const") {
      const onnx::attribute* const a = find_attribute(*s.node, "value");
      return {{}, a && a->tensors.size() == 1 ? &a->tensors[0] : nullptr};
    }
    const function_def* const f = called(*s.node);
    if (!f || s.k >= f->outputs.size()) return {};
    return resolve({&values_of(*f), f, s.node, &in}, f->outputs[s.k], depth + 1);
  }

  void note(const scope& in, const onnx::node& n) {
    const std::string table = resolve(in, n.inputs[0]).table;
    if (table.empty()) return;
    contents now;
    if (n.op_type.find("TextFile") != std::string::npos) {
      now.fault = "what is in its table is in a text file";
    } else if (n.inputs.size() >= 3) {
      now.keys = resolve(in, n.inputs[1]).constant;
      now.values = resolve(in, n.inputs[2]).constant;
    }
    if (!now.fault && (!now.keys || !now.values)) now.fault = "what is put in its table is no constant";
    const auto [at, is_new] = found_.emplace(table, now);
    if (is_new || at->second.fault) return;
    if (now.fault || !are_equal(*now.keys, *at->second.keys) || !are_equal(*now.values, *at->second.values))
      at->second = {nullptr, nullptr, "its table is initialized in several ways"};
  }

  void walk(const scope& in, const std::vector<onnx::node>& nodes, int depth) {
    for (const onnx::node& n : nodes) {
      if (left_ == 0) return;
      --left_;
      if (is_initializer(n)) note(in, n);
      const function_def* const f = depth < most_nested ? called(n) : nullptr;
      if (f && holders_.contains(f)) walk({&values_of(*f), f, &n, &in}, f->nodes, depth + 1);
    }
  }

  static constexpr int most_nested = 64;
  std::size_t left_ = std::size_t{1} << 22;  // nodes that may be walked over
  tracer main_;
  std::unordered_map<std::string_view, const function_def*> functions_;
  std::unordered_set<const function_def*> holders_;
  std::unordered_map<const function_def*, tracer> tracers_;
  std::unordered_map<std::string, contents> found_;
};

void set_table(onnx::node& n, std::string_view function, const initializers& all) {
  const contents* const c = all.find(table_of(n, function));
  const auto add = [&](const char* name, const onnx::tensor& t) {
    onnx::attribute a;
    a.name = name;
    a.kind = onnx::attribute_kind::tensor;
    a.tensors = {t};
    n.attributes.push_back(std::move(a));
  };
  std::erase_if(n.attributes,
                [](const onnx::attribute& a) { return a.name == "keys" || a.name == "values" || a.name == "fault"; });
  if (c && !c->fault) {
    add("keys", *c->keys);
    add("values", *c->values);
  } else {
    n.attributes.push_back(text_attribute("fault", c ? c->fault : "the graph has no initializer of its table"));
  }
}

}  // namespace

void set_tables(graph_def& g, std::vector<onnx::node>& nodes) {
  const auto has_table = [](const std::vector<onnx::node>& list) {
    return std::any_of(list.begin(), list.end(), is_table);
  };
  const auto in_function = [&](const function_def& f) { return has_table(f.nodes); };
  if (!has_table(nodes) && std::none_of(g.functions.begin(), g.functions.end(), in_function)) return;
  {
    const initializers all(g);
    std::vector<std::pair<onnx::node*, std::string_view>> tables;
    for (onnx::node& n : nodes)
      if (is_table(n)) tables.emplace_back(&n, "");
    for (function_def& f : g.functions)
      for (onnx::node& n : f.nodes)
        if (is_table(n)) tables.emplace_back(&n, f.name);
    for (const auto& [n, function] : tables) set_table(*n, function, all);
  }
  std::erase_if(nodes, is_initializer);
  std::unordered_set<std::string> read;
  for (const onnx::node& n : nodes)
    for (const std::string& input : n.inputs)
      if (!is_order(input)) read.emplace(parts_of(input).node);
  std::erase_if(nodes, [&](const onnx::node& n) { return is_table(n) && !read.contains(n.name); });
}

}  // namespace kiln::tensorflow
