#include "kiln/text/impl/guidance/machine.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "kiln/core/error.hpp"

namespace kiln::language::guidance {

namespace {

constexpr std::size_t most_spots = 100'000;
constexpr std::size_t most_states = 20'000;  // with 1 KB of next states each, where all are left; then made anew

lazy_states::spot spot_at(automaton::node place, std::uint32_t frame) { return std::uint64_t{frame} << 32 | place; }
automaton::node place_of(lazy_states::spot s) { return static_cast<automaton::node>(s); }
std::uint32_t frame_of_spot(lazy_states::spot s) { return static_cast<std::uint32_t>(s >> 32); }

}  // namespace

std::uint32_t machine::frame_of(lazy_states& all, automaton::node to, std::uint32_t parent) const {
  const auto next = static_cast<std::uint32_t>(all.frames.size());
  const auto [known, is_new] = all.frame_numbers.try_emplace(spot_at(to, parent), next);
  if (is_new) all.frames.push_back({to, parent});
  return known->second;
}

// Whether nothing but a rule's end comes: what is called then returns to where the rule itself would.
bool machine::is_last(automaton::node n) const {
  for (;;) {
    const automaton::place& p = automaton_.places[n];
    if (!p.edges.empty() || !p.calls.empty()) return false;
    if (automaton_.is_end[n] != 0) return p.free.empty();
    if (p.free.size() != 1) return false;
    n = p.free.front();
  }
}

std::int32_t machine::state_of(lazy_states& all, lazy_states::spots open) const {
  std::unordered_set<lazy_states::spot> seen;
  lazy_states::spots where;
  bool accepting = false;
  const auto reach = [&](automaton::node place, std::uint32_t frame) {
    if (const auto s = spot_at(place, frame); seen.insert(s).second) open.push_back(s);
  };
  seen.insert(open.begin(), open.end());
  while (!open.empty()) {
    if (seen.size() > most_spots)
      raise(errc::limit, "guide: the text so far has more than " + std::to_string(most_spots) + " readings");
    const lazy_states::spot s = open.back();
    open.pop_back();
    const automaton::node n = place_of(s);
    const std::uint32_t frame = frame_of_spot(s);
    const automaton::place& p = automaton_.places[n];
    if (!p.edges.empty()) where.push_back(s);
    for (const automaton::node to : p.free) reach(to, frame);
    for (const auto& c : p.calls)
      reach(automaton_.rules[c.rule].begin, is_last(c.to) ? frame : frame_of(all, c.to, frame));
    if (!automaton_.is_end[n]) continue;
    if (frame == 0)
      accepting = true;
    else
      reach(all.frames[frame].to, all.frames[frame].parent);
  }
  if (where.empty() && !accepting) return lazy_states::dead;
  std::sort(where.begin(), where.end());
  const auto next = static_cast<std::int32_t>(all.states.size());
  const auto [known, is_new] = all.numbers.try_emplace({std::move(where), accepting}, next);
  if (is_new) all.states.push_back({&known->first.first, accepting, nullptr, {}});
  return known->second;
}

std::int32_t machine::step(lazy_states& all, std::int32_t from, std::uint8_t byte) const {
  lazy_states::state& s = all.states[static_cast<std::size_t>(from)];
  if (!s.next) {
    s.next = std::make_unique<std::array<std::int32_t, 256>>();
    s.next->fill(lazy_states::unknown);
  }
  std::int32_t& next = (*s.next)[byte];
  if (next != lazy_states::unknown) return next;
  lazy_states::spots open;
  for (const lazy_states::spot at : *s.where)
    for (const auto& e : automaton_.places[place_of(at)].edges)
      if (e.low <= byte && byte <= e.high) open.push_back(spot_at(e.to, frame_of_spot(at)));
  std::sort(open.begin(), open.end());
  open.erase(std::unique(open.begin(), open.end()), open.end());
  return next = open.empty() ? lazy_states::dead : state_of(all, std::move(open));
}

std::vector<std::uint32_t> machine::mask_of(lazy_states& all, std::int32_t from) const {
  std::vector<std::uint32_t> bits((trie_->texts.size() + 31) / 32, 0);
  const auto allow = [&](token id) { bits[static_cast<std::size_t>(id) / 32] |= 1u << (id % 32); };
  std::vector<std::int32_t> path{from};  // the states after the bytes before each depth
  const auto& nodes = trie_->nodes;
  for (std::uint32_t k = 0; k < nodes.size();) {
    const token_trie::node& n = nodes[k];
    const std::int32_t next = step(all, path[n.depth], n.byte);
    if (next == lazy_states::dead) {
      k = n.next;
      continue;
    }
    path.resize(std::size_t{n.depth} + 1);
    path.push_back(next);
    for (std::uint32_t t = n.first; t < n.last; ++t) allow(trie_->by_bytes[t]);
    ++k;
  }
  if (all.states[static_cast<std::size_t>(from)].accepting)
    for (const token id : trie_->end_tokens) allow(id);
  return bits;
}

// Leaves states that have become too many: guides go on in fresh ones, and the last to leave releases the old.
void machine::make_room(position& p) {
  if (p.states->states.size() < most_states) return;
  if (current_ == p.states || current_->states.size() >= most_states) {
    current_ = std::make_shared<lazy_states>();
    state_of(*current_, {spot_at(automaton_.rules.front().begin, 0)});
  }
  const lazy_states& old = *p.states;
  lazy_states& fresh = *current_;
  const auto moved = [&](std::uint32_t frame) {
    std::vector<automaton::node> chain;  // innermost first
    for (; frame != 0; frame = old.frames[frame].parent) chain.push_back(old.frames[frame].to);
    std::uint32_t out = 0;
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) out = frame_of(fresh, *it, out);
    return out;
  };
  const lazy_states::state& s = old.states[static_cast<std::size_t>(p.state)];
  lazy_states::spots where;
  for (const lazy_states::spot at : *s.where) where.push_back(spot_at(place_of(at), moved(frame_of_spot(at))));
  if (s.accepting) where.push_back(spot_at(automaton_.rules.front().end, 0));
  p = {current_, state_of(fresh, std::move(where))};
}

machine::position machine::begin() {
  const std::lock_guard lock(mutex_);
  if (!current_) {
    current_ = std::make_shared<lazy_states>();
    state_of(*current_, {spot_at(automaton_.rules.front().begin, 0)});
  }
  return {current_, 0};
}

void machine::mask(const position& p, std::span<std::uint32_t> bits) {
  const std::lock_guard lock(mutex_);
  lazy_states& all = *p.states;
  // States move while others are found.
  if (all.states[static_cast<std::size_t>(p.state)].mask.empty()) {
    auto made = mask_of(all, p.state);
    all.states[static_cast<std::size_t>(p.state)].mask = std::move(made);
  }
  const auto& mask = all.states[static_cast<std::size_t>(p.state)].mask;
  std::copy(mask.begin(), mask.end(), bits.begin());
  std::fill(bits.begin() + static_cast<std::ptrdiff_t>(mask.size()), bits.end(), 0u);
}

machine::position machine::after(position p, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  make_room(p);
  for (const char c : bytes) {
    p.state = step(*p.states, p.state, static_cast<std::uint8_t>(c));
    if (p.state == lazy_states::dead) break;
  }
  return p;
}

std::string machine::forced(position p) {
  constexpr std::size_t most_bytes = 4096;
  const std::lock_guard lock(mutex_);
  std::string out;
  while (out.size() < most_bytes) {
    const lazy_states::state& s = p.states->states[static_cast<std::size_t>(p.state)];
    if (s.accepting) break;
    int only = -1;
    for (const lazy_states::spot at : *s.where)
      for (const auto& e : automaton_.places[place_of(at)].edges)
        only = e.low == e.high && (only == -1 || only == e.low) ? e.low : -2;
    if (only < 0) break;
    out += static_cast<char>(only);
    p.state = step(*p.states, p.state, static_cast<std::uint8_t>(only));
  }
  return out;
}

bool machine::accepts(const position& p) {
  const std::lock_guard lock(mutex_);
  return p.states->states[static_cast<std::size_t>(p.state)].accepting;
}

}  // namespace kiln::language::guidance
