#include <algorithm>
#include <set>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/guidance/lark.hpp"

// Paull's algorithm (Moore 2000): a rule that begins with itself, or with a rule that leads back to it, is rewritten as
// what it begins with otherwise, and then repeats. A machine that reads such rules as they are would call for ever.
namespace kiln::language::guidance {

namespace {

constexpr std::size_t most_alternatives = 2000;
using items = std::vector<lark_item>;
using kind = lark_item::kind;

void add_alternatives(const lark_item& of, items& to) {
  if (of.what == kind::choice)
    for (const lark_item& part : of.parts) add_alternatives(part, to);
  else
    to.push_back(of);
}

// An alternative as the parts that follow each other, groups that are no choice undone.
void add_parts(const lark_item& of, items& to) {
  if (of.what == kind::sequence)
    for (const lark_item& part : of.parts) add_parts(part, to);
  else
    to.push_back(of);
}

lark_item sequence_of(items parts) {
  lark_item e;
  if (!parts.empty()) e.line = parts.front().line;
  e.parts = std::move(parts);
  return e;
}

class rewriter {
 public:
  explicit rewriter(lark_grammar& g) : g_(g) {
    for (const auto& [name, item] : g.rules) {
      items all;
      add_alternatives(item, all);
      for (lark_item& a : all) {
        items parts;
        add_parts(a, parts);
        a = sequence_of(std::move(parts));
      }
      alternatives_.emplace(name, std::move(all));
    }
  }

  void run() {
    std::vector<std::string> done;
    for (const std::string& name : g_.order) {
      if (!leads_to(name, name)) continue;
      for (const std::string& other : done)
        if (leads_to(other, name)) put_in_place(name, other);
      repeat_instead(name);
      done.push_back(name);
    }
    for (const std::string& name : done) {
      lark_item& body = g_.rules.find(name)->second;
      body.what = kind::choice;
      body.parts = alternatives_.find(name)->second;
    }
  }

 private:
  static const std::string* first_rule(const lark_item& alternative) {
    if (alternative.parts.empty()) return nullptr;
    const lark_item& first = alternative.parts.front();
    return first.what == kind::name && !is_terminal_name(first.text) ? &first.text : nullptr;
  }
  // Whether a rule begins with another, or with one that does.
  bool leads_to(const std::string& from, const std::string& to) const {
    std::set<std::string> seen;
    std::vector<std::string> open{from};
    while (!open.empty()) {
      const auto rule = alternatives_.find(open.back());
      open.pop_back();
      if (rule == alternatives_.end()) continue;
      for (const lark_item& a : rule->second)
        if (const std::string* first = first_rule(a)) {
          if (*first == to) return true;
          if (seen.insert(*first).second) open.push_back(*first);
        }
    }
    return false;
  }
  void put_in_place(const std::string& of, const std::string& other) {
    items out;
    for (const lark_item& a : alternatives_[of]) {
      const std::string* first = first_rule(a);
      if (!first || *first != other) {
        out.push_back(a);
        continue;
      }
      for (const lark_item& begin : alternatives_[other]) {
        items parts = begin.parts;
        parts.insert(parts.end(), a.parts.begin() + 1, a.parts.end());
        out.push_back(sequence_of(std::move(parts)));
      }
      if (out.size() > most_alternatives)
        lark_fault(errc::limit, a.line, "rules that begin with each other are too large to rewrite");
    }
    alternatives_[of] = std::move(out);
  }
  void repeat_instead(const std::string& name) {
    items others, later;
    for (const lark_item& a : alternatives_[name]) {
      const std::string* first = first_rule(a);
      if (!first || *first != name)
        others.push_back(a);
      else if (a.parts.size() > 1)
        later.push_back(sequence_of({a.parts.begin() + 1, a.parts.end()}));
    }
    lark_item more, one;
    one.what = kind::choice, one.parts = std::move(later);
    more.what = kind::repeat, more.least = 0, more.most = unbounded;
    if (one.parts.empty()) {
      alternatives_[name] = std::move(others);
      return;
    }
    more.parts.push_back(std::move(one));
    for (lark_item& a : others) a.parts.push_back(more);
    alternatives_[name] = std::move(others);
  }

  lark_grammar& g_;
  std::map<std::string, items, std::less<>> alternatives_;
};

}  // namespace

void remove_left_recursion(lark_grammar& g) { rewriter(g).run(); }

void check_reads_first(const automaton& a, std::span<const std::string> names) {
  std::vector<char> is_empty(a.rules.size(), 0), state(a.rules.size(), 0);
  // The places that a rule comes to without reading.
  const auto reached = [&](std::uint32_t r) {
    std::vector<automaton::node> open{a.rules[r].begin};
    std::set<automaton::node> seen{open.front()};
    const auto reach = [&](automaton::node n) {
      if (seen.insert(n).second) open.push_back(n);
    };
    while (!open.empty()) {
      const automaton::place& p = a.places[open.back()];
      open.pop_back();
      for (const automaton::node to : p.free) reach(to);
      for (const auto& c : p.calls)
        if (is_empty[c.rule] != 0) reach(c.to);
    }
    return seen;
  };
  for (bool again = true; again;) {
    again = false;
    for (std::uint32_t r = 0; r < a.rules.size(); ++r)
      if (is_empty[r] == 0 && reached(r).contains(a.rules[r].end)) is_empty[r] = 1, again = true;
  }
  const auto visit = [&](auto&& self, std::uint32_t r) -> void {
    if (state[r] == 2) return;
    state[r] = 1;
    for (const automaton::node n : reached(r))
      for (const auto& c : a.places[n].calls) {
        if (state[c.rule] == 1)
          raise(errc::unsupported, "Lark grammar: rule '" + names[c.rule] +
                                       "' begins with itself after what may be empty: begin it with something else");
        self(self, c.rule);
      }
    state[r] = 2;
  };
  for (std::uint32_t r = 0; r < a.rules.size(); ++r) visit(visit, r);
}

}  // namespace kiln::language::guidance
