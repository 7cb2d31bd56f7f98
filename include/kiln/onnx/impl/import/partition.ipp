#include "kiln/onnx/partition.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "kiln/onnx/impl/file/order.hpp"

namespace kiln::onnx {

namespace {

// Who makes and who reads the names of a main graph.
class name_table {
 public:
  name_table(const model& m, std::span<const value_info> values) : model_(m) {
    const graph& g = m.main;
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      for (const std::string& o : g.nodes[i].outputs)
        if (!o.empty()) makers_.emplace(o, i);
      reads_.push_back(names_read(g.nodes[i]));
      for (const std::string_view r : reads_.back()) readers_[r].push_back(i);
    }
    for (const tensor& t : g.initializers) initializers_.emplace(t.name, &t);
    for (const value_info& v : values) declared_.emplace(v.name, &v);
    for (const value_info& v : g.inputs) declared_.emplace(v.name, &v);
    for (const value_info& v : g.outputs) declared_.emplace(v.name, &v), results_.insert(v.name);
  }

  const std::vector<std::string_view>& reads(std::size_t node) const { return reads_[node]; }
  // The node that computes a name; none of an input or initializer.
  const std::size_t* maker(std::string_view name) const { return find(makers_, name); }
  const tensor* initializer(std::string_view name) const {
    const auto* const t = find(initializers_, name);
    return t ? *t : nullptr;
  }
  value_info declared(std::string_view name) const {
    if (const auto* const v = find(declared_, name)) return **v;
    value_info unknown;
    unknown.name = name;
    return unknown;
  }
  // Whether anything outside these nodes reads what one of them computes.
  bool leaves(std::string_view name, const std::vector<bool>& inside) const {
    if (results_.contains(name)) return true;
    const auto* const r = find(readers_, name);
    return r && std::any_of(r->begin(), r->end(), [&](std::size_t i) { return !inside[i]; });
  }

  // Nodes in an order in which each follows those that it reads.
  std::vector<std::size_t> order() const {
    std::vector<std::string_view> defined, wanted;
    for (const auto& [name, t] : initializers_) defined.push_back(name);
    for (const value_info& v : model_.main.inputs)
      if (!initializers_.contains(v.name)) defined.push_back(v.name);
    for (const node& n : model_.main.nodes)
      for (const std::string& o : n.outputs)
        if (!o.empty()) wanted.push_back(o);
    return execution_order(model_.main.nodes, defined, wanted, [](std::string_view) { return true; });
  }

 private:
  template <class Map> static const typename Map::mapped_type* find(const Map& in, std::string_view name) {
    const auto found = in.find(name);
    return found == in.end() ? nullptr : &found->second;
  }
  const model& model_;
  std::vector<std::vector<std::string_view>> reads_;
  std::unordered_map<std::string_view, std::size_t> makers_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> readers_;
  std::unordered_map<std::string_view, const tensor*> initializers_;
  std::unordered_map<std::string_view, const value_info*> declared_;
  std::unordered_set<std::string_view> results_;
};

// A part's nodes all have as many changes from nodes that are left to nodes that are not before them: a way that leaves
// the part adds one, so that it can't come back.
std::vector<std::vector<std::size_t>> closed_parts(const name_table& names, std::span<const std::size_t> order,
                                                   const std::vector<std::string>& why_left) {
  std::vector<std::size_t> changes(why_left.size(), 0);
  std::map<std::size_t, std::vector<std::size_t>> parts;
  for (const std::size_t i : order) {
    const bool stays = why_left[i].empty();
    for (const std::string_view r : names.reads(i))
      if (const std::size_t* const from = names.maker(r))
        changes[i] = std::max(changes[i], changes[*from] + (stays && !why_left[*from].empty()));
    if (stays) parts[changes[i]].push_back(i);
  }
  std::vector<std::vector<std::size_t>> out;
  for (auto& [number, nodes] : parts) out.push_back(std::move(nodes));
  return out;
}

// Why a value can't cross the border of a part; nothing where it can.
std::string why_not_crossing(const value_info& v) {
  if (v.kind != value_kind::tensor) return "'" + v.name + "' is no tensor, and only tensors cross between runtimes";
  const auto type = to_dtype(v.type);
  if (!type || *type == dtype::string || is_complex(*type) || bits_of(*type) < 8)
    return "'" + v.name + "' has elements of type " + std::string(to_string(v.type)) +
           ", which do not cross between runtimes";
  if (!v.has_rank) return "'" + v.name + "' has no known rank";
  if (v.dims.size() > max_rank)
    return "'" + v.name + "' has " + std::to_string(v.dims.size()) + " dims; kiln's tensors have at most 8";
  return {};
}

std::vector<bool> inside(std::size_t count, std::span<const std::size_t> nodes) {
  std::vector<bool> out(count);
  for (const std::size_t i : nodes) out[i] = true;
  return out;
}

bool enters(const name_table& names, std::string_view name, const std::vector<bool>& in) {
  if (names.initializer(name)) return false;
  const std::size_t* const from = names.maker(name);
  return !from || !in[*from];
}

model take_part(const model& m, const name_table& names, std::span<const std::size_t> nodes) {
  model out;
  out.ir_version = m.ir_version, out.versions = m.versions, out.functions = m.functions, out.producer = m.producer;
  out.main.name = m.main.name;
  const std::vector<bool> in = inside(m.main.nodes.size(), nodes);
  std::unordered_set<std::string_view> taken;
  for (const std::size_t i : nodes) {
    const node& n = m.main.nodes[i];
    out.main.nodes.push_back(n);
    for (const std::string_view r : names.reads(i)) {
      if (!taken.insert(r).second) continue;
      if (const tensor* const t = names.initializer(r))
        out.main.initializers.push_back(*t);
      else if (enters(names, r, in))
        out.main.inputs.push_back(names.declared(r));
    }
    for (const std::string& o : n.outputs)
      if (!o.empty() && names.leaves(o, in)) out.main.outputs.push_back(names.declared(o));
  }
  return out;
}

// Adds to `why_left` the nodes at a part's border whose values can't cross it; returns whether there are any.
bool leave_borders(const model& m, const name_table& names, std::span<const std::size_t> nodes,
                   std::vector<std::string>& why_left) {
  const std::vector<bool> in = inside(m.main.nodes.size(), nodes);
  bool any = false;
  const auto check = [&](std::size_t i, std::string_view name) {
    const std::string why = why_not_crossing(names.declared(name));
    if (why.empty() || !why_left[i].empty()) return;
    why_left[i] = why;
    any = true;
  };
  for (const std::size_t i : nodes) {
    for (const std::string_view r : names.reads(i))
      if (enters(names, r, in)) check(i, r);
    for (const std::string& o : m.main.nodes[i].outputs)
      if (!o.empty() && names.leaves(o, in)) check(i, o);
  }
  return any;
}

// The same for nodes that cannot be imported.
bool leave_faulty(const model& m, const name_table& names, std::span<const std::size_t> nodes,
                  const import_options& options, std::vector<std::string>& why_left) {
  const model part = take_part(m, names, nodes);
  if (part.main.outputs.empty()) {
    for (const std::size_t i : nodes) why_left[i] = "nothing reads what it computes";
    return true;
  }
  try {
    const std::vector<node_fault> faults = faulty_nodes(part, options);
    for (const node_fault& f : faults) why_left[nodes[f.node]] = f.why.empty() ? "cannot be imported" : f.why;
    return !faults.empty();
  } catch (const error& e) {
    for (const std::size_t i : nodes) why_left[i] = e.what();
    return true;
  }
}

}  // namespace

model part_of(const model& m, std::span<const std::size_t> nodes, std::span<const value_info> values) {
  return take_part(m, name_table(m, values), nodes);
}

model_partition partition_model(const model& m, std::span<const value_info> values, const partition_options& options) {
  const name_table names(m, values);
  const std::vector<std::size_t> order = names.order();
  std::vector<std::string> why_left(m.main.nodes.size());
  if (options.refuse)
    for (std::size_t i = 0; i < why_left.size(); ++i) why_left[i] = options.refuse(m.main.nodes[i]);
  std::vector<std::vector<std::size_t>> parts;
  for (bool changed = true; changed;) {
    changed = false;
    parts = closed_parts(names, order, why_left);
    for (const auto& nodes : parts)
      changed = leave_borders(m, names, nodes, why_left) ||
                leave_faulty(m, names, nodes, options.importing, why_left) || changed;
  }
  model_partition out;
  for (auto& nodes : parts)
    if (nodes.size() >= options.least_nodes)
      out.parts.push_back(std::move(nodes));
    else
      for (const std::size_t i : nodes)
        why_left[i] = "part of " + std::to_string(nodes.size()) + " nodes, at least " +
                      std::to_string(options.least_nodes) + " are asked for";
  for (std::size_t i = 0; i < why_left.size(); ++i)
    if (!why_left[i].empty()) out.left.push_back({i, why_left[i]});
  return out;
}

}  // namespace kiln::onnx
