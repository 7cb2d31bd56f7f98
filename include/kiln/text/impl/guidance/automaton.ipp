#include "kiln/text/impl/guidance/automaton.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "kiln/core/error.hpp"

namespace kiln::language::guidance {

namespace {

constexpr std::size_t most_places = 300'000;  // some 30 MB

// Those within [low, high], as offsets from low.
code_ranges within(const code_ranges& characters, std::uint32_t low, std::uint32_t high) {
  code_ranges out;
  for (const auto& [a, b] : characters)
    if (b >= low && a <= high) out.emplace_back(std::max(a, low) - low, std::min(b, high) - low);
  return out;
}

// The paths of one class of characters. Blocks of characters that need the same bytes share their places.
class class_paths {
 public:
  class_paths(automaton& a, automaton::node to) : a_(a), to_(to) {}

  // Edges for the bytes from `lead` on, each of which stands for a block of 64 to the power `more` characters.
  void add(automaton::node from, std::uint8_t lead, int more, const code_ranges& characters) {
    if (characters.empty()) return;
    const std::uint32_t block = std::uint32_t{1} << (6 * more);
    std::vector<automaton::edge> edges;
    for (std::uint32_t k = 0; k <= characters.back().second / block; ++k) {
      const code_ranges own = within(characters, k * block, (k + 1) * block - 1);
      if (own.empty()) continue;
      const automaton::node to = after(more, own);
      const auto byte = static_cast<std::uint8_t>(lead + k);
      if (!edges.empty() && edges.back().to == to && edges.back().high + 1 == byte)
        edges.back().high = byte;
      else
        edges.push_back({byte, byte, to});
    }
    auto& all = a_.places[from].edges;
    all.insert(all.end(), edges.begin(), edges.end());
  }

 private:
  automaton::node after(int more, const code_ranges& own) {
    if (more == 0) return to_;
    const auto [known, is_new] = known_.try_emplace({more, own}, 0);
    if (is_new) {
      known->second = a_.add_place();
      add(known->second, 0x80, more - 1, own);
    }
    return known->second;
  }

  automaton& a_;
  automaton::node to_;
  std::map<std::pair<int, code_ranges>, automaton::node> known_;
};

// Which places lead to the end of their rule, given which rules have a text.
std::vector<char> places_with_a_text(const automaton& a) {
  std::vector<std::vector<automaton::node>> before(a.places.size());  // by edges
  std::vector<std::vector<automaton::node>> waiting(a.rules.size());  // places that call a rule
  for (automaton::node n = 0; n < a.places.size(); ++n) {
    for (const auto& e : a.places[n].edges) before[e.to].push_back(n);
    for (const automaton::node to : a.places[n].free) before[to].push_back(n);
    for (const auto& c : a.places[n].calls) waiting[c.rule].push_back(n);
  }
  std::vector<char> alive(a.places.size(), 0);
  std::vector<automaton::node> open;
  const auto found = [&](automaton::node n) {
    if (std::exchange(alive[n], 1) == 0) open.push_back(n);
  };
  const auto calls = [&](automaton::node n) {
    return std::any_of(a.places[n].calls.begin(), a.places[n].calls.end(),
                       [&](const auto& c) { return alive[a.rules[c.rule].begin] != 0 && alive[c.to] != 0; });
  };
  for (const auto& r : a.rules) found(r.end);
  // A call counts once the rule has a text and what follows the call does: look again at callers of either kind.
  for (bool again = true; again;) {
    while (!open.empty()) {
      const automaton::node n = open.back();
      open.pop_back();
      for (const automaton::node m : before[n]) found(m);
    }
    for (const auto& callers : waiting)
      for (const automaton::node n : callers)
        if (alive[n] == 0 && calls(n)) found(n);
    again = !open.empty();
  }
  return alive;
}

}  // namespace

automaton::node automaton::add_place() {
  if (places.size() == most_places) raise(errc::limit, "more than " + std::to_string(most_places) + " states");
  places.emplace_back();
  return static_cast<node>(places.size() - 1);
}

std::uint32_t automaton::add_rule() {
  const node begin = add_place(), end = add_place();
  rules.push_back({begin, end});
  return static_cast<std::uint32_t>(rules.size() - 1);
}

void automaton::add_characters(node from, node to, const code_ranges& characters) {
  struct form {
    std::uint32_t low, high;
    std::uint8_t lead;
    int more;
  };
  // RFC 3629, section 4.
  constexpr form forms[] = {{0, 0x7F, 0, 0},
                            {0x80, 0x7FF, 0xC0, 1},
                            {0x800, 0xD7FF, 0xE0, 2},
                            {0xE000, 0xFFFF, 0xE0, 2},
                            {0x10000, last_code_point, 0xF0, 3}};
  class_paths paths(*this, to);
  for (const form& f : forms) paths.add(from, f.lead, f.more, intersection(characters, {{f.low, f.high}}));
}

void automaton::finish() {
  const std::vector<char> alive = places_with_a_text(*this);
  for (place& p : places) {
    std::erase_if(p.edges, [&](const edge& e) { return alive[e.to] == 0; });
    std::erase_if(p.free, [&](node to) { return alive[to] == 0; });
    std::erase_if(p.calls, [&](const call& c) { return alive[rules[c.rule].begin] == 0 || alive[c.to] == 0; });
  }
  if (alive[rules.front().begin] == 0) raise(errc::invalid_argument, "no text matches");
  is_end.assign(places.size(), 0);
  for (const rule& r : rules) is_end[r.end] = 1;
}

}  // namespace kiln::language::guidance
