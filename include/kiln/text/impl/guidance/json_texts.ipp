#include "kiln/text/impl/guidance/json_texts.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::guidance {

namespace {

using node = automaton::node;

const code_ranges all_characters = {{0, last_code_point}};

}  // namespace

node json_texts::text(node from, std::string_view bytes) {
  for (const char c : bytes) {
    const node to = a_.add_place();
    const auto byte = static_cast<std::uint8_t>(c);
    a_.places[from].edges.push_back({byte, byte, to});
    from = to;
  }
  return from;
}

node json_texts::pattern(node from, std::string_view pattern) {
  return add_expression(a_, from, parse_expression(pattern, extent::whole), spelling::plain);
}

node json_texts::call(node from, std::uint32_t rule) {
  const node to = a_.add_place();
  a_.places[from].calls.push_back({rule, to});
  return to;
}

node json_texts::blank(node from) {
  if (!blank_) {
    blank_ = a_.add_rule();
    const automaton::rule r = a_.rules[*blank_];
    a_.add_free(pattern(r.begin, " ?|\n {0,40}"), r.end);
  }
  return call(from, *blank_);
}

node json_texts::string(node from, const expression& content) {
  return text(add_expression(a_, text(from, "\""), content, spelling::json_string), "\"");
}

node json_texts::string(node from, std::uint32_t least, std::uint32_t most) {
  expression one, e;
  one.what = expression::kind::characters;
  one.characters = all_characters;
  e.what = expression::kind::repeat;
  e.parts = {one};
  e.least = least;
  e.most = most;
  if (least != 0 || most != unbounded) return string(from, e);
  if (!string_) {
    string_ = a_.add_rule();
    const automaton::rule r = a_.rules[*string_];
    a_.add_free(string(r.begin, e), r.end);
  }
  return call(from, *string_);
}

// A trie of the names; a character that leaves it leads to where all strings end. Each string has one spelling.
node json_texts::string_other_than(node from, const std::vector<std::string>& names) {
  struct branch {
    node place;
    std::map<std::uint32_t, std::size_t> next;
    bool is_name = false;
  };
  std::vector<branch> branches{{text(from, "\""), {}, false}};
  for (const std::string& name : names) {
    std::size_t at = 0;
    for (std::size_t k = 0; k < name.size();) {
      const auto c = static_cast<std::uint32_t>(detail::next_character(name, k));
      const auto [known, is_new] = branches[at].next.try_emplace(c, branches.size());
      const std::size_t next = known->second;
      if (is_new) branches.push_back({a_.add_place(), {}, false});
      at = next;
    }
    branches[at].is_name = true;
  }
  const node others = a_.add_place(), quote = a_.add_place();
  add_spelled(a_, others, others, all_characters, spelling::json_string);
  a_.add_free(others, quote);
  for (const branch& b : branches) {
    code_ranges inside;
    for (const auto& [c, next] : b.next) {
      inside.emplace_back(c, c);
      add_spelled(a_, b.place, branches[next].place, {{c, c}}, spelling::json_string);
    }
    add_spelled(a_, b.place, others, negated(inside), spelling::json_string);
    if (!b.is_name) a_.add_free(b.place, quote);
  }
  return text(quote, "\"");
}

node json_texts::object(node from, const std::vector<property>& properties, std::optional<std::uint32_t> others,
                        const std::vector<std::string>& names, const expression* named, std::uint32_t least,
                        std::uint32_t most) {
  // By the number of properties that have come, as far as it matters: from 1 on a comma is due before the next one.
  const std::uint32_t last = most == unbounded ? std::max(least, std::uint32_t{1}) : most;
  std::vector<node> at{blank(text(from, "{"))};
  while (at.size() <= last) at.push_back(a_.add_place());
  // One more property, which `add` reads from a place on.
  const auto one_more = [&](const std::vector<node>& to, auto&& add) {
    std::vector<std::optional<node>> begins(to.size());
    for (std::uint32_t n = 0; n <= last; ++n) {
      if (n == last && most != unbounded) continue;
      const std::uint32_t next = std::min(n + 1, last);
      if (!begins[next]) {
        begins[next] = a_.add_place();
        a_.add_free(add(*begins[next]), to[next]);
      }
      a_.add_free(n == 0 ? at[n] : blank(text(at[n], ",")), *begins[next]);
    }
  };
  for (const property& p : properties) {
    std::vector<node> next;
    while (next.size() <= last) next.push_back(a_.add_place());
    one_more(next, [&](node begin) { return call(pattern(text(text(begin, p.name_text), ":"), " ?"), p.value); });
    for (std::uint32_t n = 0; n <= last && !p.required; ++n) a_.add_free(at[n], next[n]);
    at = next;
  }
  if (others)
    one_more(at, [&](node begin) {
      const node name = named ? string(begin, *named) : string_other_than(begin, names);
      return call(pattern(text(name, ":"), " ?"), *others);
    });
  const node out = a_.add_place();
  for (std::uint32_t n = least; n <= last; ++n) a_.add_free(text(n == 0 ? at[n] : blank(at[n]), "}"), out);
  return out;
}

node json_texts::array(node from, const std::vector<std::uint32_t>& first, std::uint32_t others, std::uint32_t least,
                       std::uint32_t most) {
  const node close = a_.add_place(), out = a_.add_place();
  const auto value = [&](std::size_t k) { return k < first.size() ? first[k] : others; };
  node at = blank(text(from, "["));
  a_.add_free(text(close, "]"), out);
  if (least == 0) a_.add_free(at, close);
  const std::size_t single =
      most == unbounded ? std::max({std::size_t{least}, first.size(), std::size_t{1}}) : std::size_t{most};
  for (std::size_t k = 0; k < single; ++k) {
    if (k > 0) at = blank(text(at, ","));
    at = call(at, value(k));
    if (k + 1 >= least) a_.add_free(blank(at), close);
  }
  if (most == unbounded) a_.add_free(call(blank(text(at, ",")), others), at);
  return out;
}

// By the set of those that have come.
node json_texts::distinct(node from, const std::vector<std::string>& values, std::uint32_t least, std::uint32_t most) {
  const node close = a_.add_place(), out = a_.add_place();
  a_.add_free(text(close, "]"), out);
  std::vector<node> at{blank(text(from, "["))};
  while (at.size() < std::size_t{1} << values.size()) at.push_back(a_.add_place());
  for (std::size_t set = 0; set < at.size(); ++set) {
    const auto count = static_cast<std::uint32_t>(std::popcount(set));
    if (count > most) continue;
    if (count >= least) a_.add_free(count == 0 ? at[set] : blank(at[set]), close);
    if (count == most || count == values.size()) continue;
    const node begin = count == 0 ? at[set] : blank(text(at[set], ","));
    for (std::size_t k = 0; k < values.size(); ++k)
      if ((set >> k & 1) == 0) a_.add_free(text(begin, values[k]), at[set | std::size_t{1} << k]);
  }
  return out;
}

std::uint32_t json_texts::any() {
  if (any_) return *any_;
  any_ = a_.add_rule();
  const automaton::rule r = a_.rules[*any_];
  a_.add_free(object(r.begin, {}, *any_, {}), r.end);
  a_.add_free(array(r.begin, {}, *any_, 0, unbounded), r.end);
  a_.add_free(string(r.begin, 0, unbounded), r.end);
  a_.add_free(number(r.begin), r.end);
  for (const char* word : {"true", "false", "null"}) a_.add_free(text(r.begin, word), r.end);
  return *any_;
}

}  // namespace kiln::language::guidance
