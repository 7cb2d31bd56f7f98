#include "kiln/onnx/impl/import/unknown_ranks.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include "kiln/onnx/impl/file/order.hpp"
#include "kiln/onnx/impl/import/importer.hpp"
#include "kiln/onnx/impl/restored.hpp"

namespace kiln::onnx {

unknown_ranks::tensor_set unknown_ranks::bit_of(std::string_view name, const entry& e) {
  constexpr std::size_t most = 64;
  const value condition = rank_condition(state_, e.held, *e.home);
  const value_id from = (condition ? condition : e.held.tensor).id();
  const std::pair<const module_frame*, std::uint64_t> origin{e.home,
                                                             std::uint64_t{from.instruction} << 32 | from.result};
  const auto found = std::find(origins_.begin(), origins_.end(), origin);
  const auto k = static_cast<std::size_t>(found - origins_.begin());
  if (found == origins_.end() && k < most) origins_.push_back(origin), tensors_.push_back(name);
  return tensor_set{1} << std::min(k, most - 1);
}

bool unknown_ranks::must_wait(std::size_t index) {
  if (!state_.has_unknown_ranks) return false;
  waiting_node w{index};
  for (const std::string_view name : names_read(nodes_[index])) {
    if (const auto made = outputs_.find(name); made != outputs_.end()) {
      w.follows |= made->second;
      continue;
    }
    const entry* e = names_.find(name);
    if (e && !e->is_lost && !e->held.possible_types.empty() && !has_first_type(state_, *e)) w.reads |= bit_of(name, *e);
  }
  w.follows |= w.reads;
  if (!w.follows) return false;
  waiting_.push_back(w);
  for (const std::string& o : nodes_[index].outputs)
    if (!names_.entries.contains(o)) outputs_.emplace(o, w.follows);
  return true;
}

// Of the nodes that wait, those with outputs that something still needs.
std::vector<std::size_t> unknown_ranks::needed_nodes() const {
  std::unordered_set<std::string_view> read(wanted_.begin(), wanted_.end());
  std::vector<std::size_t> out;
  for (std::size_t k = waiting_.size(); k-- > 0;) {
    const node& n = nodes_[waiting_[k].index];
    const auto is_missing = [&](const std::string& o) { return read.contains(o) && !names_.entries.contains(o); };
    if (std::none_of(n.outputs.begin(), n.outputs.end(), is_missing)) continue;
    out.push_back(waiting_[k].index);
    for (const std::string_view r : names_read(n)) read.insert(r);
  }
  return {out.rbegin(), out.rend()};
}

void unknown_ranks::import_waiting() {
  std::set<std::vector<std::size_t>> attempted;
  while (!waiting_.empty()) {
    tensor_set all = 0;
    std::vector<tensor_set> sets;
    for (const auto& w : waiting_) {
      all |= w.follows;
      if (std::find(sets.begin(), sets.end(), w.follows) == sets.end()) sets.push_back(w.follows);
    }
    // what follows from the fewest tensors first
    std::stable_sort(sets.begin(), sets.end(),
                     [](tensor_set a, tensor_set b) { return std::popcount(a) < std::popcount(b); });
    std::erase(sets, all);
    sets.push_back(all);
    for (const tensor_set tensors : sets) {
      if (!attempted.insert(indices_of(tensors)).second && tensors != all) continue;
      if (import_part(tensors)) break;
    }
    const std::vector<std::size_t> left = needed_nodes();
    waiting_.clear(), outputs_.clear(), tensors_.clear(), origins_.clear();
    for (const std::size_t index : left)
      if (!must_wait(index)) importer_.import_node(names_, nodes_[index], index);
  }
}

// The nodes that follow from these tensors alone.
std::vector<std::size_t> unknown_ranks::indices_of(tensor_set tensors) const {
  std::vector<std::size_t> out;
  for (const auto& w : waiting_)
    if ((w.follows & ~tensors) == 0) out.push_back(w.index);
  return out;
}

unknown_ranks::graph_part unknown_ranks::part_of(tensor_set tensors) const {
  graph_part part;
  part.nodes.name = "rest";
  part.nodes.inputs.emplace_back().name = tensors_[static_cast<std::size_t>(std::countr_zero(tensors))];
  std::unordered_set<std::string_view> outside(wanted_.begin(), wanted_.end());
  part.indices = indices_of(tensors);
  for (const std::size_t index : part.indices) part.nodes.nodes.push_back(nodes_[index]);
  for (const auto& w : waiting_) {
    if ((w.follows & ~tensors) == 0) continue;
    part.is_tensor_read_later = part.is_tensor_read_later || (w.reads & tensors) != 0;
    for (const std::string_view r : names_read(nodes_[w.index])) outside.insert(r), part.read_later.insert(r);
  }
  for (const std::size_t index : part.indices)
    for (const std::string& o : nodes_[index].outputs) {
      if (!outside.contains(o) || names_.entries.contains(o)) continue;
      part.results.push_back(o);
      part.nodes.outputs.emplace_back().name = o;
    }
  return part;
}

namespace {

// Whether a result can be one value in either variant with all that is known of it: an extent of 1 broadcasts, others
// that differ are the run's to tell.
bool has_one_type(const variable& a, const variable& b) {
  if (!a.possible_types.empty() || !b.possible_types.empty() || a.type.rank() != b.type.rank()) return false;
  for (std::size_t d = 0; d < a.type.rank(); ++d) {
    const dimension m = a.type.lens[d], n = b.type.lens[d];
    if (!(m == n) && (m == dimension(1) || n == dimension(1))) return false;
  }
  return true;
}

// Whether nothing is known of the extents that a tensor of unknown rank may have.
bool has_unknown_extents(const variable& tensor) {
  return std::all_of(tensor.possible_types.begin(), tensor.possible_types.end(), [](const shape& s) {
    return std::none_of(s.lens.begin(), s.lens.end(), [](dimension d) { return d.is_constant(); });
  });
}

}  // namespace

// Keeps the results that may leave the part: those of one rank, or those whose ranks nothing else that waits knows too.
// Ranks that belong together would be combined otherwise. Says whether there are any.
bool unknown_ranks::keep_results(graph_part& part, rank_variants& variants, bool is_single, bool is_unsized) const {
  std::size_t several = 0;
  std::vector<bool> is_one;
  for (std::size_t k = 0; k < part.results.size(); ++k) {
    const auto agrees = [&](const body_module& b) { return has_one_type(variants.bodies[0].outputs[k], b.outputs[k]); };
    is_one.push_back((is_single || is_unsized) && std::all_of(variants.bodies.begin(), variants.bodies.end(), agrees));
    several += !is_one[k] && part.read_later.contains(part.results[k]);
  }
  const bool all = variants.bodies.size() == 1 || (several == 1 && !part.is_tensor_read_later && is_unsized);
  for (std::size_t k = part.results.size(); k-- > 0;) {
    if (all || is_one[k] || !part.read_later.contains(part.results[k])) continue;
    for (body_module& b : variants.bodies) b.outputs.erase(k), b.graph.outputs.erase(k);
    part.results.erase(part.results.begin() + static_cast<std::ptrdiff_t>(k));
    part.nodes.outputs.erase(part.nodes.outputs.begin() + static_cast<std::ptrdiff_t>(k));
  }
  return !part.results.empty();
}

// Imports the nodes that follow from these tensors alone, for each type of the first of them. Says whether any results
// left the part.
bool unknown_ranks::import_part(tensor_set tensors) {
  graph_part part = part_of(tensors);
  const std::string_view name = tensors_[static_cast<std::size_t>(std::countr_zero(tensors))];
  const node& first = nodes_[part.indices[0]];
  const std::string who = describe(first, part.indices[0]);
  const restored no_bodies(state_.bodies_of_node, 0u);
  const path_step step(state_, part.indices[0]);
  const restored here(state_.names, &names_);
  const std::size_t faults_before = state_.faults.size(), modules = state_.bodies.size();
  variables outputs;
  try {
    const entry& e = state_.find(names_, name);
    const variable tensor = state_.read(e);
    value is_first = rank_condition(state_, e.held, *e.home);
    if (is_first) is_first = state_.frame->inside(is_first, *e.home);
    state_.frame->build.label =
        text(first.name.empty() ? first.op_type + "_" + std::to_string(state_.nodes) : first.name);
    rank_variants variants(state_, bodies_, part.nodes, tensor, is_first);
    if (variants.bodies.empty()) {
      state_.faults.add(variants.why);
    } else {
      if (!keep_results(part, variants, std::has_single_bit(tensors), has_unknown_extents(tensor))) {
        state_.bodies.resize(modules);
        return false;
      }
      // the model means the types that its nodes can take; a run with another one is an error
      if (variants.bodies.size() < tensor.possible_types.size()) narrow(name, tensor, variants.types);
      outputs = variants.join(first);
    }
  } catch (const error& e) {
    if (e.code() != errc::unsupported) throw state_.faults.located(e, first.name, who);
    state_.faults.add_unsupported(who, {}, e.what());
  }
  const bool is_lost = state_.faults.size() != faults_before;
  for (std::size_t k = 0; k < part.results.size(); ++k) {
    entry& e = names_.entries[part.results[k]];
    if (is_lost || k >= outputs.size())
      e.is_lost = true;
    else
      state_.define_output(e, part.results[k], outputs[k]);
  }
  return true;
}

// A tensor, and with it all that the same condition decides, has one of some of its types.
void unknown_ranks::narrow(std::string_view name, const variable& tensor, const type_indices& kept) {
  std::vector<std::pair<std::string_view, variable>> decided;
  const value condition = rank_condition(state_, tensor, *state_.frame);
  for (scope* s = &names_; s && condition; s = s->outer)
    for (const auto& [other, e] : s->entries) {
      if (e.is_lost || e.held.possible_types.empty() || e.home != state_.frame) continue;
      if (const value v = rank_condition(state_, e.held, *state_.frame); v && v.id() == condition.id())
        decided.emplace_back(other, e.held);
    }
  if (decided.empty()) decided.emplace_back(name, tensor);
  for (const auto& [other, v] : decided) state_.define(names_, other, narrowed(state_.frame->build, v, kept));
}

}  // namespace kiln::onnx
