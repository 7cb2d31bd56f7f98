#include <algorithm>
#include <bit>
#include <set>

#include "kiln/onnx/impl/importer_scope.hpp"
#include "kiln/onnx/impl/order.hpp"
#include "kiln/onnx/impl/parse_body.hpp"
#include "kiln/op/dynamic/branch.hpp"

// A value has one rank. What follows from a tensor that has one of several is therefore built for each of them.
namespace kiln::onnx {

// What an open tensor's name stands for; null for all other names.
const importer::entry* importer::open_entry(scope& names, std::string_view name) {
  for (scope* s = &names; s; s = s->outer)
    if (const auto found = s->names.find(name); found != s->names.end()) {
      const entry& e = found->second;
      return !e.lost && !e.held.either.empty() && !known_first(e) ? &e : nullptr;
    }
  return nullptr;
}

// The bool that says whether an open tensor has the first of two types: the condition of the branch that made it.
value importer::decider(const variable& open, frame& home) {
  if (open.either.size() != 2) return {};
  const auto& made = home.build.module().producer(open.tensor.id());
  const auto* b = made.kind == instruction_kind::op ? made.op.get_if<op::branch>() : nullptr;
  if (!b) return {};
  const auto gives = [&](module_ref r, const shape& type) {
    const module_graph& body = bodies_[r.index - 1];
    const auto& held = body.producer(body.outputs[open.tensor.id().result]);
    return held.kind == instruction_kind::op && held.op.is<op::make_optional>() && held.inputs.size() == 1 &&
           body.shape_of(held.inputs[0]).rank() == type.rank();
  };
  if (!gives(b->then_body, open.either[0]) || !gives(b->else_body, open.either[1])) return {};
  return home.build.wrap(made.inputs[0]);
}

// Whether an open tensor has its first type, where the graph at work is built for one outcome of what decides that: it
// captured the condition as a constant.
std::optional<bool> importer::known_first(const entry& e) {
  if (e.held.either.empty() || e.home == frame_) return std::nullopt;
  value v = decider(e.held, *e.home);
  if (!v) return std::nullopt;
  std::vector<frame*> way;
  for (frame* f = frame_; f && f != e.home; f = f->outer) way.push_back(f);
  for (std::size_t k = way.size(); k-- > 0;) {
    const auto& captured = way[k]->captured;
    const auto found =
        std::find_if(captured.begin(), captured.end(), [&](const auto& c) { return c.first.id() == v.id(); });
    if (found == captured.end()) return std::nullopt;
    v = found->second;
    const auto& made = way[k]->build.module().producer(v.id());
    if (made.kind == instruction_kind::literal) return made.constant.at<bool>(0);
  }
  return std::nullopt;
}

// An open tensor that is known to have one of some of its types.
variable importer::of_types(builder& b, variable open, const type_places& kept) {
  shapes types;
  for (const std::size_t k : kept) types.push_back(open.either[k]);
  if (types.size() == 1) return b.add(op::optional_get{types[0].type, types[0].lens}, open.tensor);
  open.either = std::move(types);
  return open;
}

// An open tensor, and with it all that one condition decides, has one of some of its types.
void importer::narrow(scope& names, std::string_view open, const variable& held, const type_places& kept) {
  std::vector<std::pair<std::string_view, variable>> decided;
  const value condition = decider(held, *frame_);
  for (scope* s = &names; s && condition; s = s->outer)
    for (const auto& [name, e] : s->names) {
      if (e.lost || e.held.either.empty() || e.home != frame_) continue;
      if (const value other = decider(e.held, *frame_); other && other.id() == condition.id())
        decided.emplace_back(name, e.held);
    }
  for (const auto& [name, v] : decided) names.names[name] = {of_types(frame_->build, v, kept), frame_};
  if (decided.empty()) names.names[open] = {of_types(frame_->build, held, kept), frame_};
}

// Imports the nodes that follow from no open tensor; the others wait.
importer::waiting_nodes importer::import_ready(scope& names, const std::vector<node>& nodes,
                                               const std::vector<std::size_t>& order) {
  constexpr std::size_t most = 64;
  waiting_nodes out;
  std::unordered_map<std::string_view, std::uint64_t> follows;
  const auto bit_of = [&](std::string_view name, const entry& e) {
    const value v = decider(e.held, *e.home);
    const value_id from = (v ? v : e.held.tensor).id();
    const std::pair<const frame*, std::uint64_t> origin{e.home, std::uint64_t{from.instruction} << 32 | from.result};
    const auto found = std::find(out.origins.begin(), out.origins.end(), origin);
    const auto k = static_cast<std::size_t>(found - out.origins.begin());
    if (found == out.origins.end() && k < most) out.origins.push_back(origin), out.open.push_back(name);
    return std::uint64_t{1} << std::min(k, most - 1);
  };
  for (const std::size_t k : order) {
    waiting_nodes::waiter w{k};
    for (const std::string_view read : ranks_open_ ? names_read(nodes[k]) : std::vector<std::string_view>())
      if (const auto made = follows.find(read); made != follows.end())
        w.on |= made->second;
      else if (const entry* e = open_entry(names, read))
        w.by |= bit_of(read, *e);
    w.on |= w.by;
    if (!w.on) {
      import_node(names, nodes[k], k);
      continue;
    }
    out.nodes.push_back(w);
    for (const std::string& o : nodes[k].outputs)
      if (!names.names.contains(o)) follows.emplace(o, w.on);
  }
  return out;
}

void importer::import_nodes(scope& names, const std::vector<node>& nodes, const std::vector<std::size_t>& order,
                            std::span<const std::string_view> wanted) {
  std::set<std::vector<std::size_t>> tried;
  // those that something not yet there still needs
  const auto needed = [&](const waiting_nodes& all) {
    std::unordered_set<std::string_view> read(wanted.begin(), wanted.end());
    std::vector<std::size_t> out;
    for (std::size_t k = all.nodes.size(); k-- > 0;) {
      const node& n = nodes[all.nodes[k].at];
      const auto missing = [&](const std::string& o) { return read.contains(o) && !names.names.contains(o); };
      if (std::none_of(n.outputs.begin(), n.outputs.end(), missing)) continue;
      out.push_back(all.nodes[k].at);
      for (const std::string_view r : names_read(n)) read.insert(r);
    }
    return std::vector<std::size_t>(out.rbegin(), out.rend());
  };
  waiting_nodes left = import_ready(names, nodes, order);
  while (!left.nodes.empty()) {
    std::uint64_t all = 0;
    std::vector<std::uint64_t> sets;
    for (const auto& w : left.nodes) {
      all |= w.on;
      if (std::find(sets.begin(), sets.end(), w.on) == sets.end()) sets.push_back(w.on);
    }
    // what follows from the fewest first
    std::stable_sort(sets.begin(), sets.end(),
                     [](std::uint64_t a, std::uint64_t b) { return std::popcount(a) < std::popcount(b); });
    std::erase(sets, all);
    sets.push_back(all);
    for (const std::uint64_t bits : sets) {
      std::vector<std::size_t> part;
      for (const auto& w : left.nodes)
        if ((w.on & ~bits) == 0) part.push_back(w.at);
      if (!tried.insert(std::move(part)).second && bits != all) continue;
      if (import_by_rank(names, nodes, left, bits, wanted)) break;
    }
    left = import_ready(names, nodes, needed(left));
  }
}

namespace {

// Whether a value is either of these and what is known of both is still known: an extent of 1 broadcasts, one that only
// the run knows is taken to be what it meets.
bool joins_well(const variable& a, const variable& b) {
  if (!a.either.empty() || !b.either.empty() || a.type.rank() != b.type.rank()) return false;
  for (std::size_t d = 0; d < a.type.rank(); ++d) {
    const dimension m = a.type.lens[d], n = b.type.lens[d];
    if (!(m == n) && (m == dimension(1) || n == dimension(1))) return false;
  }
  return true;
}
// Whether nothing is known of the extents that an open tensor may have.
bool has_open_extents(const variable& open) {
  return std::all_of(open.either.begin(), open.either.end(), [](const shape& s) {
    return std::none_of(s.lens.begin(), s.lens.end(), [](dimension d) { return d.is_constant(); });
  });
}

}  // namespace

// Builds the nodes that follow from these open tensors alone, for each type of the first. Their results may leave where
// they have one rank, or where nothing else that waits knows the same ranks: ranks that belong together would be
// combined otherwise. Says whether any results left.
bool importer::import_by_rank(scope& names, const std::vector<node>& nodes, const waiting_nodes& all,
                              std::uint64_t bits, std::span<const std::string_view> wanted) {
  const std::string_view open = all.open[static_cast<std::size_t>(std::countr_zero(bits))];
  graph part;
  part.name = "rest";
  value_info input;
  input.name = std::string(open);
  part.inputs.push_back(input);
  std::unordered_set<std::string_view> outside(wanted.begin(), wanted.end()), read_later;
  std::vector<std::size_t> order;
  bool is_read_later = false;
  for (const auto& w : all.nodes) {
    if ((w.on & ~bits) == 0) {
      order.push_back(w.at);
      part.nodes.push_back(nodes[w.at]);
      continue;
    }
    is_read_later = is_read_later || (w.by & bits) != 0;
    for (const std::string_view r : names_read(nodes[w.at])) outside.insert(r), read_later.insert(r);
  }
  std::vector<std::string_view> results;  // as the graph itself names them
  for (const std::size_t k : order)
    for (const std::string& o : nodes[k].outputs) {
      if (!outside.contains(o) || names.names.contains(o)) continue;
      results.push_back(o);
      value_info output;
      output.name = o;
      part.outputs.push_back(output);
    }
  const node& first = nodes[order[0]];
  const std::string who = describe(first, order[0]);
  const restored no_bodies(bodies_here_, 0u);
  way_.push_back(static_cast<std::uint32_t>(order[0]));
  const popped_at_end way(way_);
  const restored here(current_, &names);
  const std::size_t given_up = faults_.size(), modules = bodies_.size();
  variables outputs;
  std::vector<std::string_view> leaving;
  try {
    const entry& opened = *find(names, open);
    const variable held = local(opened);
    value is_first = decider(opened.held, *opened.home);
    if (is_first) is_first = inside(is_first, *opened.home, *frame_);
    frame_->build.label = text(first.name.empty() ? first.op_type + "_" + std::to_string(nodes_) : first.name);
    ranked made = build_ranks(part, held, is_first);
    if (made.bodies.empty()) {
      faults_.add(made.why);
      leaving = results;
    } else {
      const bool is_single = std::has_single_bit(bits), is_unsized = has_open_extents(held);
      std::size_t ranks_left = 0;
      std::vector<bool> has_one;
      for (std::size_t k = 0; k < results.size(); ++k) {
        const variable& first_one = made.bodies[0].outputs[k];
        const auto like_first = [&](const body_module& b) { return joins_well(first_one, b.outputs[k]); };
        has_one.push_back((is_single || is_unsized) && std::all_of(made.bodies.begin(), made.bodies.end(), like_first));
        ranks_left += !has_one[k] && read_later.contains(results[k]);
      }
      const bool all_leave = made.bodies.size() == 1 || (ranks_left == 1 && !is_read_later && is_unsized);
      for (std::size_t k = results.size(); k-- > 0;) {
        if (all_leave || has_one[k] || !read_later.contains(results[k])) continue;
        for (body_module& b : made.bodies) b.outputs.erase(k), b.graph.outputs.erase(k);
        results.erase(results.begin() + static_cast<std::ptrdiff_t>(k));
        part.outputs.erase(part.outputs.begin() + static_cast<std::ptrdiff_t>(k));
      }
      if (results.empty()) {
        bodies_.resize(modules);
        return false;
      }
      leaving = results;
      // the model means what its nodes can take; a run with another rank is an error
      if (made.bodies.size() < held.either.size()) narrow(names, open, held, made.types);
      for (body_module& b : made.bodies) b.graph.compact();
      outputs = join_ranks(part, first, held, is_first, std::move(made));
    }
  } catch (error& e) {
    if (e.code() != errc::unsupported)
      throw e.at_instruction(first.name).at_source(place_.empty() ? who : place_ + ", " + who);
    give_up(who, {}, e.what());
    leaving = results;
  }
  const bool lost = faults_.size() != given_up;
  for (std::size_t k = 0; k < leaving.size(); ++k) {
    entry& e = names.names[leaving[k]];
    if (lost || k >= outputs.size()) {
      e.lost = true;
      continue;
    }
    e.held = kept_apart(leaving[k], outputs[k]);
    e.home = frame_;
  }
  return true;
}

}  // namespace kiln::onnx
