#include "kiln/onnx/impl/file/order.hpp"

#include <unordered_map>
#include <unordered_set>

#include "kiln/onnx/impl/file/fault_list.hpp"

namespace kiln::onnx {

namespace {

using names = std::unordered_set<std::string_view>;

void collect_reads(const node& n, std::vector<std::string_view>& out);

void collect_captures(const graph& g, std::vector<std::string_view>& out) {
  names own;
  for (const value_info& v : g.inputs) own.insert(v.name);
  for (const tensor& t : g.initializers) own.insert(t.name);
  for (const node& n : g.nodes)
    for (const std::string& o : n.outputs) own.insert(o);
  std::vector<std::string_view> reads;
  for (const node& n : g.nodes) collect_reads(n, reads);
  for (const value_info& v : g.outputs) reads.push_back(v.name);
  for (const std::string_view r : reads)
    if (!own.contains(r)) out.push_back(r);
}

void collect_reads(const node& n, std::vector<std::string_view>& out) {
  for (const std::string& i : n.inputs)
    if (!i.empty()) out.push_back(i);
  const bool names_tensors = n.op_type == "Gradient" && n.domain == "ai.onnx.preview.training";
  for (const attribute& a : n.attributes) {
    for (const graph& g : a.graphs) collect_captures(g, out);
    if (names_tensors) out.insert(out.end(), a.texts.begin(), a.texts.end());
    if (names_tensors && a.name == "y") out.push_back(a.text);
  }
}

}  // namespace

std::vector<std::string_view> names_read(const node& n) {
  std::vector<std::string_view> out;
  collect_reads(n, out);
  return out;
}

std::vector<std::string_view> names_of(const std::vector<value_info>& values) {
  std::vector<std::string_view> out;
  for (const value_info& v : values) out.push_back(v.name);
  return out;
}

std::string describe(const node& n, std::size_t index) {
  const std::string op = (n.domain.empty() ? "" : n.domain + ".") + n.op_type;
  return (n.name.empty() ? "node " + std::to_string(index) : "node '" + n.name + "'") + " (" + op + ")";
}

namespace {

// An order by depth-first search, with an explicit stack: graphs are long chains. `before` are the nodes that each node
// reads.
std::vector<std::size_t> sorted(const std::vector<node>& nodes, const std::vector<std::vector<std::size_t>>& before) {
  enum : std::uint8_t { untouched, active, done };
  std::vector<std::uint8_t> state(nodes.size(), untouched);
  std::vector<std::size_t> order;
  struct visit {
    std::size_t node, next;
  };
  std::vector<visit> stack;
  for (std::size_t root = 0; root < nodes.size(); ++root) {
    if (state[root] != untouched) continue;
    stack.push_back({root, 0});
    state[root] = active;
    while (!stack.empty()) {
      visit& v = stack.back();
      if (v.next == before[v.node].size()) {
        state[v.node] = done;
        order.push_back(v.node);
        stack.pop_back();
        continue;
      }
      const std::size_t next = before[v.node][v.next++];
      if (state[next] == active) raise(errc::malformed, "the graph has a cycle through " + describe(nodes[next], next));
      if (state[next] == untouched) {
        state[next] = active;
        stack.push_back({next, 0});
      }
    }
  }
  return order;
}

}  // namespace

std::vector<std::size_t> execution_order(const std::vector<node>& nodes, std::span<const std::string_view> defined,
                                         std::span<const std::string_view> wanted,
                                         const std::function<bool(std::string_view)>& is_known) {
  std::unordered_map<std::string_view, std::size_t> maker;
  names outside;
  fault_list broken;
  const auto refuse = [&](const std::string& why) {
    if (!broken.full()) broken.add(error(errc::malformed, why));
  };
  for (const std::string_view d : defined)
    if (!outside.insert(d).second) refuse("the name '" + std::string(d) + "' is defined twice");
  for (std::size_t k = 0; k < nodes.size(); ++k)
    for (const std::string& o : nodes[k].outputs) {
      if (o.empty()) continue;
      if (outside.contains(o) || !maker.emplace(o, k).second)
        refuse("the name '" + o + "' is defined twice, the second time by " + describe(nodes[k], k));
    }
  const auto has_value = [&](std::string_view name) { return outside.contains(name) || is_known(name); };

  std::vector<std::vector<std::size_t>> before(nodes.size());
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    for (const std::string_view r : names_read(nodes[k])) {
      if (const auto m = maker.find(r); m != maker.end())
        before[k].push_back(m->second);
      else if (!has_value(r))
        refuse(describe(nodes[k], k) + " reads '" + std::string(r) + "', which no node, initializer or input defines");
    }
  }
  for (const std::string_view w : wanted)
    if (!maker.contains(w) && !has_value(w)) refuse("the graph's output '" + std::string(w) + "' is defined nowhere");
  if (!broken.empty()) broken.throw_all({});

  std::vector<std::size_t> order = sorted(nodes, before);
  // only what the outputs need
  std::vector<bool> needed(nodes.size(), false);
  for (const std::string_view w : wanted)
    if (const auto m = maker.find(w); m != maker.end()) needed[m->second] = true;
  for (std::size_t k = order.size(); k-- > 0;)
    if (needed[order[k]])
      for (const std::size_t b : before[order[k]]) needed[b] = true;
  std::erase_if(order, [&](std::size_t k) { return !needed[k]; });
  return order;
}

}  // namespace kiln::onnx
