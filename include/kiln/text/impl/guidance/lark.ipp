#include "kiln/text/impl/guidance/lark.hpp"

#include <algorithm>
#include <charconv>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/guidance/json_schema.hpp"

namespace kiln::language::guidance {

namespace {

constexpr std::size_t most_parts = 100'000;  // of terminals, with those that they are made of in place

class compiler {
 public:
  compiler(const lark_grammar& g, const token_trie& vocabulary) : g_(g), vocabulary_(vocabulary) {
    const auto start = g.rules.find("start");
    if (start == g.rules.end()) raise(errc::not_found, "Lark grammar: there is no rule 'start'");
    const std::uint32_t language = a_.add_rule();
    if (!g.ignored.empty()) {
      skip_ = a_.add_rule();
      expression all, each;
      all.what = expression::kind::repeat, all.least = 0, all.most = unbounded;
      each.what = expression::kind::choice;
      for (const lark_item& i : g.ignored) each.parts.push_back(terminal(i));
      all.parts.push_back(std::move(each));
      const automaton::rule r = a_.rules[skip_];
      a_.add_free(add_expression(a_, r.begin, all, spelling::plain), r.end);
    }
    const automaton::rule r = a_.rules[language];
    a_.add_free(call(r.begin, rule_of("start", start->second.line)), r.end);
    while (!open_.empty()) {
      const auto [name, rule] = open_.back();
      open_.pop_back();
      const automaton::rule own = a_.rules[rule];
      a_.add_free(add(own.begin, g_.rules.find(name)->second), own.end);
    }
    std::vector<std::string> names(a_.rules.size());
    for (const auto& [name, rule] : rules_) names[rule] = name;
    check_reads_first(a_, names);
  }
  automaton take() { return std::move(a_); }

 private:
  using node = automaton::node;
  using kind = lark_item::kind;

  node call(node from, std::uint32_t rule) {
    const node to = a_.add_place();
    a_.places[from].calls.push_back({rule, to});
    return to;
  }
  std::uint32_t rule_of(const std::string& name, std::size_t line) {
    if (const auto known = rules_.find(name); known != rules_.end()) return known->second;
    if (!g_.rules.contains(name)) lark_fault(errc::not_found, line, "there is no rule '" + name + "'");
    const std::uint32_t r = a_.add_rule();
    rules_.emplace(name, r);
    open_.emplace_back(name, r);
    return r;
  }
  std::uint32_t terminal_of(const std::string& name, std::size_t line) {
    if (const auto known = rules_.find(name); known != rules_.end()) return known->second;
    const expression e = named_terminal(name, line);
    const std::uint32_t r = a_.add_rule();
    rules_.emplace(name, r);
    const automaton::rule own = a_.rules[r];
    a_.add_free(add_expression(a_, own.begin, e, spelling::plain), own.end);
    return r;
  }

  expression named_terminal(const std::string& name, std::size_t line) {
    const auto found = g_.terminals.find(name);
    if (found == g_.terminals.end()) lark_fault(errc::not_found, line, "there is no terminal '" + name + "'");
    if (std::find(path_.begin(), path_.end(), name) != path_.end())
      lark_fault(errc::malformed, line, "terminal '" + name + "' is made of itself");
    path_.push_back(name);
    expression e = terminal(found->second);
    path_.pop_back();
    return e;
  }
  // A terminal is one expression.
  expression terminal(const lark_item& item) {
    if (++parts_ > most_parts) lark_fault(errc::limit, item.line, "the terminals are too large");
    switch (item.what) {
      case kind::match: return item.match;
      case kind::special:
        lark_fault(errc::malformed, item.line,
                   "a special token belongs in rules, whose names are lower case: found <" + item.text + ">");
      case kind::schema: lark_fault(errc::malformed, item.line, "%json belongs in rules, whose names are lower case");
      case kind::name:
        if (!is_terminal_name(item.text) && !item.text.starts_with("COMMON."))
          lark_fault(errc::malformed, item.line, "a terminal is made of terminals, found the rule '" + item.text + "'");
        return named_terminal(item.text, item.line);
      default: break;
    }
    expression e;
    e.what = item.what == kind::sequence   ? expression::kind::sequence
             : item.what == kind::choice   ? expression::kind::choice
             : item.what == kind::both     ? expression::kind::both
             : item.what == kind::other    ? expression::kind::other
             : item.what == kind::shortest ? expression::kind::shortest
                                           : expression::kind::repeat;
    e.least = item.least, e.most = item.most;
    for (const lark_item& part : item.parts) e.parts.push_back(terminal(part));
    return e;
  }

  node skipped(node from) { return g_.ignored.empty() ? from : call(from, skip_); }
  node add(node from, const lark_item& item) {
    switch (item.what) {
      case kind::match: return add_expression(a_, skipped(from), item.match, spelling::plain);
      case kind::name:
        return is_terminal_name(item.text) ? call(skipped(from), terminal_of(item.text, item.line))
                                           : call(from, rule_of(item.text, item.line));
      case kind::schema: try { return call(skipped(from), add_schema(a_, item.text));
        } catch (const error& e) {
          lark_fault(e.code(), item.line, e.message());
        }
      case kind::sequence:
        for (const lark_item& part : item.parts) from = add(from, part);
        return from;
      case kind::choice: {
        const node out = a_.add_place();
        for (const lark_item& part : item.parts) {
          const node begin = a_.add_place();
          a_.add_free(from, begin);
          a_.add_free(add(begin, part), out);
        }
        return out;
      }
      case kind::repeat: return repeat(from, item);
      case kind::special: return special(skipped(from), item);
      case kind::both:
      case kind::other:
      case kind::shortest: return combined(skipped(from), item);
    }
    return from;
  }
  // Terminals of these are one.
  node combined(node from, const lark_item& item) {
    try {
      return add_expression(a_, from, terminal(item), spelling::plain);
    } catch (const error& e) {
      if (e.code() != errc::limit) throw;
      lark_fault(e.code(), item.line, e.message());
    }
  }
  // A special token by its spelling, or some by their numbers: <[3]>, <[3,5-9]>.
  node special(node from, const lark_item& item) {
    const node out = a_.add_place();
    for (const token id : special_ids(item)) {
      if (vocabulary_.ends[static_cast<std::size_t>(id)] != 0)
        lark_fault(errc::unsupported, item.line,
                   "<" + item.text + "> is an end token, which comes where the text ends: leave it out");
      node at = from;
      for (const char c : special_bytes(id)) {
        const node next = a_.add_place();
        const auto byte = static_cast<std::uint8_t>(c);
        a_.places[at].edges.push_back({byte, byte, next});
        at = next;
      }
      a_.add_free(at, out);
    }
    return out;
  }
  tokens special_ids(const lark_item& item) const {
    const std::string name = "<" + item.text + ">";
    if (const auto found = vocabulary_.specials.find(name); found != vocabulary_.specials.end()) return {found->second};
    tokens out;
    const std::string_view text = item.text;
    if (!text.starts_with('[') || !text.ends_with(']'))
      lark_fault(errc::not_found, item.line, "the vocabulary has no special token '" + name + "'");
    const char *at = text.data() + 1, *const end = text.data() + text.size() - 1;
    while (at < end) {
      token first = 0;
      const auto read = [&](token& to) {
        const auto [next, fault] = std::from_chars(at, end, to);
        if (fault != std::errc() || to < 0)
          lark_fault(errc::malformed, item.line, "expected numbers of tokens, such as <[3,5-9]>, found " + name);
        at = next;
      };
      read(first);
      token last = first;
      if (at < end && *at == '-') ++at, read(last);
      if (at < end && *at++ != ',')
        lark_fault(errc::malformed, item.line, "expected numbers of tokens, such as <[3,5-9]>, found " + name);
      for (token id = first; id <= last; ++id) {
        if (static_cast<std::size_t>(id) >= vocabulary_.texts.size() ||
            (vocabulary_.ends[static_cast<std::size_t>(id)] == 0 &&
             vocabulary_.texts[static_cast<std::size_t>(id)] != special_bytes(id)))
          lark_fault(errc::not_found, item.line, "token " + std::to_string(id) + " is no special token");
        out.push_back(id);
      }
    }
    return out;
  }
  node repeat(node from, const lark_item& item) {
    const lark_item& part = item.parts.front();
    for (std::uint32_t k = 0; k < item.least; ++k) from = add(from, part);
    const node out = a_.add_place();
    a_.add_free(from, out);
    if (item.most == unbounded) {
      a_.add_free(add(out, part), out);
      return out;
    }
    for (std::uint32_t k = item.least; k < item.most; ++k) {
      from = add(from, part);
      a_.add_free(from, out);
    }
    return out;
  }

  const lark_grammar& g_;
  const token_trie& vocabulary_;
  automaton a_;
  std::map<std::string, std::uint32_t, std::less<>> rules_;  // of rules and terminals
  std::vector<std::pair<std::string, std::uint32_t>> open_;
  std::vector<std::string> path_;  // of terminals that are made of each other
  std::uint32_t skip_ = 0;
  std::size_t parts_ = 0;
};

}  // namespace

automaton automaton_of_lark(std::string_view text, const token_trie& vocabulary) {
  lark_grammar g = parse_lark(text);
  remove_left_recursion(g);
  return compiler(g, vocabulary).take();
}

}  // namespace kiln::language::guidance
