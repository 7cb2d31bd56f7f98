#include "kiln/text/impl/guidance/regular.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "kiln/core/error.hpp"

namespace kiln::language::guidance {

namespace {

constexpr std::size_t most_states = 5000;  // with 1 KB each

// The states of an automaton that is made from keys: `next(key, byte)` gives the key after a byte, or nothing.
template <class Key, class Next, class Accepts> regular made(Key begin, const Next& next, const Accepts& accepts) {
  regular out;
  std::map<Key, std::int32_t> numbers;
  std::vector<const Key*> keys;
  const auto number_of = [&](Key k) {
    const auto [known, is_new] = numbers.try_emplace(std::move(k), static_cast<std::int32_t>(keys.size()));
    if (is_new) {
      if (keys.size() == most_states)
        raise(errc::limit, "a terminal of '&', '~' or [lazy] has more than " + std::to_string(most_states) + " states");
      keys.push_back(&known->first);
      out.states.push_back({{}, accepts(known->first)});
      out.states.back().next.fill(regular::none);
    }
    return known->second;
  };
  number_of(std::move(begin));
  for (std::size_t at = 0; at < keys.size(); ++at)
    for (int byte = 0; byte < 256; ++byte)
      if (auto k = next(*keys[at], static_cast<std::uint8_t>(byte))) {
        const std::int32_t to = number_of(std::move(*k));
        out.states[at].next[static_cast<std::size_t>(byte)] = to;
      }
  return out;
}

std::vector<automaton::node> closed(const automaton& a, std::vector<automaton::node> open) {
  std::vector<automaton::node> out = open;
  while (!open.empty()) {
    const automaton::node n = open.back();
    open.pop_back();
    for (const automaton::node to : a.places[n].free)
      if (std::find(out.begin(), out.end(), to) == out.end()) out.push_back(to), open.push_back(to);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// States of two automata side by side; the second may have none any more.
template <class Accepts> regular product(const regular& a, const regular& b, bool needs_both, const Accepts& accepts) {
  using key = std::pair<std::int32_t, std::int32_t>;
  const auto has = [](const regular& r, std::int32_t s) {
    return s >= 0 && r.states[static_cast<std::size_t>(s)].accepts;
  };
  const auto next = [&](const key& k, std::uint8_t byte) -> std::optional<key> {
    const std::int32_t left = a.states[static_cast<std::size_t>(k.first)].next[byte];
    const std::int32_t right =
        k.second == regular::none ? regular::none : b.states[static_cast<std::size_t>(k.second)].next[byte];
    if (left == regular::none || (needs_both && right == regular::none)) return std::nullopt;
    return key{left, right};
  };
  return made(key{0, 0}, next, [&](const key& k) { return accepts(has(a, k.first), has(b, k.second)); });
}

}  // namespace

regular regular_of(const expression& e) {
  automaton a;
  const automaton::rule r = a.rules[a.add_rule()];
  a.add_free(add_expression(a, r.begin, e, spelling::plain), r.end);
  using key = std::vector<automaton::node>;
  const auto next = [&](const key& k, std::uint8_t byte) -> std::optional<key> {
    key to;
    for (const automaton::node n : k)
      for (const auto& edge : a.places[n].edges)
        if (edge.low <= byte && byte <= edge.high && std::find(to.begin(), to.end(), edge.to) == to.end())
          to.push_back(edge.to);
    if (to.empty()) return std::nullopt;
    return closed(a, std::move(to));
  };
  return made(closed(a, {r.begin}), next, [&](const key& k) { return std::binary_search(k.begin(), k.end(), r.end); });
}

regular intersection(const regular& a, const regular& b) {
  return product(a, b, true, [](bool in_a, bool in_b) { return in_a && in_b; });
}
regular difference(const regular& a, const regular& b) {
  return product(a, b, false, [](bool in_a, bool in_b) { return in_a && !in_b; });
}
regular shortest(regular a) {
  for (regular::state& s : a.states)
    if (s.accepts) s.next.fill(regular::none);
  return a;
}

automaton::node add_regular(automaton& to, automaton::node from, const regular& r) {
  const automaton::node out = to.add_place();
  std::vector<automaton::node> places;
  while (places.size() < r.states.size()) places.push_back(to.add_place());
  to.add_free(from, places.front());
  for (std::size_t s = 0; s < places.size(); ++s) {
    if (r.states[s].accepts) to.add_free(places[s], out);
    auto& edges = to.places[places[s]].edges;
    for (int byte = 0; byte < 256; ++byte) {
      const std::int32_t next = r.states[s].next[static_cast<std::size_t>(byte)];
      if (next == regular::none) continue;
      const automaton::node place = places[static_cast<std::size_t>(next)];
      if (!edges.empty() && edges.back().to == place && edges.back().high + 1 == byte)
        edges.back().high = static_cast<std::uint8_t>(byte);
      else
        edges.push_back({static_cast<std::uint8_t>(byte), static_cast<std::uint8_t>(byte), place});
    }
  }
  return out;
}

}  // namespace kiln::language::guidance
