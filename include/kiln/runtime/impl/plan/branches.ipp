#include "kiln/runtime/impl/plan/branches.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::detail {
namespace {

constexpr std::uint32_t none = branch_choice::none;

// For each step the earlier ones that write what it reads. Only these order steps: no element is written twice, and
// buffers that a group touches don't share memory while it runs.
std::vector<std::vector<std::uint32_t>> sources_of(const plan& p) {
  std::vector<std::vector<std::uint32_t>> writers(p.buffers.size()), sources(p.steps.size());
  for (std::uint32_t i = 0; i < p.steps.size(); ++i) {
    const step& st = p.steps[i];
    for (std::uint32_t k = 0; k < st.inputs; ++k) {
      const auto& by = writers[p.operands[st.first_operand + k].buffer];
      sources[i].insert(sources[i].end(), by.begin(), by.end());
    }
    for (std::uint32_t k = st.inputs; k < st.inputs + st.outputs; ++k)
      writers[p.operands[st.first_operand + k].buffer].push_back(i);
  }
  return sources;
}

// By the operands' extents.
double bytes_of(std::span<const tensor> all) {
  double sum = 0;
  for (const tensor& t : all) {
    auto n = static_cast<double>(size_of(t.type));
    for (std::size_t d = 0; d < t.rank(); ++d) n *= t.strides[d] != 0 ? static_cast<double>(t.lens[d]) : 1;
    sum += n;
  }
  return sum;
}

double flops_of(const step& st, std::span<const std::int64_t> sizes) {
  return st.flops == step::uncounted ? 0 : static_cast<double>(sizes[st.flops]);
}

// Seconds of a step by its operations and bytes, and by its kernel's own estimate (0 where it has none).
struct step_seconds {
  double counted, own;
};
step_seconds seconds_of(const step& st, std::span<const tensor> tensors, std::span<const std::int64_t> sizes,
                        unsigned threads) {
  constexpr double flops_a_second = 150e9, bytes_a_second = 20e9;
  const auto all = tensors.subspan(st.first_operand, st.inputs + st.outputs);
  const double own = st.run->estimated_seconds(all.first(st.inputs), all.subspan(st.inputs), threads);
  return {(flops_of(st, sizes) / flops_a_second + bytes_of(all) / bytes_a_second) / threads,
          own > 0 && std::isfinite(own) ? own : 0};
}

// What groups are estimated to take, in seconds. Numbers are of a processor of 2023; only their ratios matter.
class group_estimate {
 public:
  group_estimate(const plan& p, std::span<const tensor> tensors, std::span<const std::int64_t> sizes, unsigned threads,
                 branch_choice& room)
      : plan_(p), tensors_(tensors), sizes_(sizes), threads_(threads), room_(room) {
    room.alone.assign(p.steps.size(), unknown);
    room.together.assign(p.steps.size(), unknown);
  }

  // Orders the branches so that the longest begins first.
  bool gains(const branch_group& g, std::span<std::uint32_t> order) const {
    // Packed weights that several rows share are read by each thread where a step is cut; what enters and leaves the
    // group comes from another core's cache where it isn't.
    constexpr double weights_a_second = 60e9, foreign_a_second = 10e9, fork = 0.5e-6, clearly = 0.98;
    // How much of the time that branches would wait for the longest one is left when they share its steps.
    constexpr double uneven = 0.3;
    const auto at_once = std::min<std::size_t>(threads_, g.branches.size());
    const auto each = static_cast<unsigned>(threads_ / at_once);
    std::vector<double>&times = room_.times, &ends = room_.ends;
    times.assign(g.branches.size(), 0);
    double one_by_one = 0, weights = 0, foreign = 0;
    for (std::size_t b = 0; b < g.branches.size(); ++b)
      for (const std::uint32_t i : g.branches[b]) {
        times[b] += each == 1 ? alone(i) : shared(i, each);
        one_by_one += together(i);
        weights += shared_weights(plan_.steps[i]);
      }
    for (const std::uint32_t s : g.edges) foreign += static_cast<double>(sizes_[plan_.buffers[s].bytes_slot]);
    one_by_one += weights * (1 - 1.0 / threads_) / weights_a_second;
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return times[a] != times[b] ? times[a] > times[b] : a < b; });
    ends.assign(at_once, 0);
    for (const std::uint32_t b : order) *std::min_element(ends.begin(), ends.end()) += times[b];
    const auto ways = static_cast<double>(at_once);
    const double even = std::accumulate(times.begin(), times.end(), 0.0) / ways,
                 longest = *std::max_element(ends.begin(), ends.end());
    const double beside = even + uneven * (longest - even) + foreign * (1 - 1 / ways) / foreign_a_second + fork;
    return beside < clearly * one_by_one;
  }

 private:
  static constexpr double unknown = -1;

  double alone(std::uint32_t i) const {
    double& kept = room_.alone[i];
    return kept = kept == unknown ? seconds(i, 1) : kept;
  }
  double together(std::uint32_t i) const {
    double& kept = room_.together[i];
    return kept = kept == unknown ? shared(i, threads_) : kept;
  }

  double shared_weights(const step& st) const {
    constexpr double few_rows = 16;
    const auto bytes = static_cast<double>(st.run->packed_bytes());
    return flops_of(st, sizes_) > few_rows * bytes / 2 ? bytes : 0;
  }

  double seconds(std::uint32_t i, unsigned threads) const {
    const step_seconds found = seconds_of(plan_.steps[i], tensors_, sizes_, threads);
    return found.own > 0 ? found.own : found.counted;
  }

  // A step that several threads share has parts that are not even, and some wait for others.
  double shared(std::uint32_t i, unsigned threads) const {
    constexpr double cut = 4e-6;
    return std::min(alone(i), seconds(i, threads) + cut);
  }

  const plan& plan_;
  std::span<const tensor> tensors_;
  std::span<const std::int64_t> sizes_;
  unsigned threads_;
  branch_choice& room_;
};

// Buffers with data that a group reads from before it or leaves to what comes after it.
std::vector<std::uint32_t> edges_of(const plan& p, std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint32_t> edges;
  for (std::uint32_t i = first; i < last; ++i)
    for (std::uint32_t k = 0; k < p.steps[i].inputs + p.steps[i].outputs; ++k) {
      const std::uint32_t at = p.operands[p.steps[i].first_operand + k].buffer;
      const lower::buffer& s = p.buffers[at];
      if (s.kind == lower::memory::arena ? s.first < first || s.last >= last
                                         : s.kind == lower::memory::input || s.kind == lower::memory::output)
        edges.push_back(at);
    }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

// Says which buffers the branches of a chosen group, whose first one has number `branch`, touch.
void note_owners(const plan& p, const branch_group& g, std::uint32_t branch, branch_choice& to) {
  const auto touch = [&](std::uint32_t& owner) {
    owner = owner == none || owner == branch ? branch : branch_choice::several;
  };
  for (const auto& steps : g.branches) {
    for (const std::uint32_t i : steps)
      for (std::uint32_t k = 0; k < p.steps[i].inputs + p.steps[i].outputs; ++k) {
        const std::uint32_t s = p.operands[p.steps[i].first_operand + k].buffer;
        if (p.buffers[s].first >= g.first) touch(to.first_owner[s]);
        if (p.buffers[s].last < g.last) touch(to.last_owner[s]);
      }
    ++branch;
  }
}

}  // namespace

void find_groups(plan& p) {
  constexpr std::uint32_t most_steps = 64;  // of a group: bounds the time that this takes
  const auto sources = sources_of(p);
  const auto steps = static_cast<std::uint32_t>(p.steps.size());
  std::vector<std::uint32_t> branch;  // of each step from `first` on
  for (std::uint32_t first = 0; first < steps; ++first) {
    branch.clear();
    std::uint32_t branches = 0;
    for (std::uint32_t i = first; i < std::min(steps, first + most_steps); ++i) {
      std::uint32_t own = none;
      bool joins = false;
      for (const std::uint32_t from : sources[i]) {
        if (from < first) continue;
        joins = joins || (own != none && own != branch[from - first]);
        own = branch[from - first];
      }
      if (joins) break;
      branch.push_back(own == none ? branches++ : own);
    }
    if (branches < 2) continue;
    const std::uint32_t last = first + static_cast<std::uint32_t>(branch.size());
    branch_group g{first, last, {}, edges_of(p, first, last)};
    g.branches.resize(branches);
    for (std::uint32_t k = 0; k < branch.size(); ++k) g.branches[branch[k]].push_back(first + k);
    p.groups.push_back(std::move(g));
  }
}

void choose_alone(const plan& p, std::span<const tensor> tensors, std::span<const std::uint8_t> changed,
                  std::span<const std::int64_t> sizes, unsigned threads, std::vector<std::uint8_t>& to) {
  constexpr double fork = 1e-6;  // and what the threads fetch of each other's lines
  to.resize(p.steps.size(), 0);
  if (threads == 1) return std::fill(to.begin(), to.end(), std::uint8_t{0});
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const auto of_step = changed.subspan(p.steps[i].first_operand, p.steps[i].inputs + p.steps[i].outputs);
    if (std::find(of_step.begin(), of_step.end(), 1) == of_step.end()) continue;
    const step_seconds found = seconds_of(p.steps[i], tensors, sizes, 1);
    const bool known = found.own > 0 || flops_of(p.steps[i], sizes) > 0;
    to[i] = known && (found.own > 0 ? found.own : found.counted) * (1 - 1.0 / threads) < fork;
  }
}

void choose_groups(const plan& p, std::span<const tensor> tensors, std::span<const std::int64_t> sizes,
                   std::span<const std::size_t> scratch, unsigned threads, branch_choice& to) {
  constexpr std::size_t cached = 1 << 20;  // half of a core's L2
  const std::size_t steps = p.steps.size();
  to.groups.clear();
  to.orders.resize(steps);
  to.begin.resize(steps);
  std::iota(to.begin.begin(), to.begin.end(), 0U);
  to.first_owner.assign(p.buffers.size(), none);
  to.last_owner.assign(p.buffers.size(), none);
  if (p.groups.empty()) return;
  to.groups.reserve(steps / 2);
  to.times.reserve(steps);
  to.ends.reserve(threads);
  const group_estimate estimate(p, tensors, sizes, threads, to);
  const std::size_t greatest = *std::max_element(scratch.begin(), scratch.end());
  std::uint32_t next = 0, branches = 0;  // the first step after the last group, and branches so far
  const branch_group* tried = nullptr;
  for (const branch_group& g : p.groups) {
    // One that only lacks a step of some branch seldom gains where the one with it does not.
    if (g.first < next || (tried && tried->last == g.last && tried->branches.size() == g.branches.size())) continue;
    tried = &g;
    const std::span<std::uint32_t> order(to.orders.data() + branches, g.branches.size());
    if (!estimate.gains(g, order)) continue;
    // Each branch may need as much as the greatest step of the group: in all, no more than twice what the plan takes
    // without groups, but where that stays in each core's cache.
    const std::size_t each = *std::max_element(scratch.begin() + g.first, scratch.begin() + g.last),
                      at_once = std::min<std::size_t>(threads, order.size());
    if (each > cached && at_once * each > 2 * greatest) continue;
    to.groups.push_back({&g, order, each});
    std::fill(to.begin.begin() + g.first, to.begin.begin() + g.last, g.first);
    note_owners(p, g, branches, to);
    next = g.last;
    branches += static_cast<std::uint32_t>(order.size());
  }
}

}  // namespace kiln::detail
