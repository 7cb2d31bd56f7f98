#include "kiln/text/impl/guidance/regular.hpp"

#include <algorithm>
#include <bitset>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "kiln/core/error.hpp"

namespace kiln::language::guidance {

namespace {

using byte_set = std::bitset<256>;

constexpr std::size_t most_states = 5000;     // with 1 KB each
constexpr std::size_t most_places = 1000000;  // of the sets that are states

// The states of an automaton that is made from keys: `next(key, byte)` gives the key after a byte, or nothing;
// `cuts(key)` the bytes for which that may be another than for the byte before.
template <class Key, class Next, class Cuts, class Accepts>
regular made(Key begin, const Next& next, const Cuts& cuts, const Accepts& accepts) {
  regular out;
  std::size_t places = 0;
  std::map<Key, std::int32_t> numbers;
  std::vector<const Key*> keys;
  const auto number_of = [&](Key k) {
    const auto [known, is_new] = numbers.try_emplace(std::move(k), static_cast<std::int32_t>(keys.size()));
    if (is_new) {
      if (keys.size() == most_states)
        raise(errc::limit, "a terminal of '&', '~' or [lazy] has more than " + std::to_string(most_states) + " states");
      if constexpr (requires { known->first.size(); })
        if ((places += known->first.size()) > most_places)
          raise(errc::limit,
                "a terminal of '&', '~' or [lazy] has states of more than " + std::to_string(most_places) + " places");
      keys.push_back(&known->first);
      out.states.push_back({{}, accepts(known->first)});
      out.states.back().next.fill(regular::none);
    }
    return known->second;
  };
  number_of(std::move(begin));
  for (std::size_t at = 0; at < keys.size(); ++at) {
    const byte_set changes = cuts(*keys[at]);
    std::int32_t to = regular::none;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (byte == 0 || changes[byte]) {
        auto k = next(*keys[at], static_cast<std::uint8_t>(byte));
        to = k ? number_of(std::move(*k)) : regular::none;
      }
      out.states[at].next[byte] = to;
    }
  }
  return out;
}

// Sets of an automaton's places, as sorted lists.
class place_sets {
 public:
  using set = std::vector<automaton::node>;
  explicit place_sets(const automaton& a) : a_(a), is_in_(a.places.size(), 0) {}

  set begin(automaton::node at) {
    set out;
    add(out, at);
    return closed(std::move(out));
  }
  set after(const set& from, std::uint8_t byte) {
    set out;
    for (const automaton::node n : from)
      for (const auto& edge : a_.places[n].edges)
        if (edge.low <= byte && byte <= edge.high) add(out, edge.to);
    return closed(std::move(out));
  }
  byte_set cuts(const set& from) const {
    byte_set out;
    for (const automaton::node n : from)
      for (const auto& edge : a_.places[n].edges) {
        out.set(edge.low);
        if (edge.high < 255) out.set(edge.high + 1U);
      }
    return out;
  }

 private:
  void add(set& to, automaton::node n) {
    if (is_in_[n] != 0) return;
    is_in_[n] = 1;
    to.push_back(n);
  }
  set closed(set out) {
    for (std::size_t k = 0; k < out.size(); ++k)
      for (const automaton::node to : a_.places[out[k]].free) add(out, to);
    for (const automaton::node n : out) is_in_[n] = 0;
    std::sort(out.begin(), out.end());
    return out;
  }
  const automaton& a_;
  std::vector<char> is_in_;  // the set that is being made
};

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
  const auto cuts = [](const key&) { return byte_set().set(); };
  return made(key{0, 0}, next, cuts, [&](const key& k) { return accepts(has(a, k.first), has(b, k.second)); });
}

}  // namespace

regular regular_of(const expression& e) {
  automaton a;
  const automaton::rule r = a.rules[a.add_rule()];
  a.add_free(add_expression(a, r.begin, e, spelling::plain), r.end);
  using key = place_sets::set;
  place_sets sets(a);
  const auto next = [&](const key& k, std::uint8_t byte) -> std::optional<key> {
    key to = sets.after(k, byte);
    return to.empty() ? std::nullopt : std::optional(std::move(to));
  };
  return made(
      sets.begin(r.begin), next, [&](const key& k) { return sets.cuts(k); },
      [&](const key& k) { return std::binary_search(k.begin(), k.end(), r.end); });
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
