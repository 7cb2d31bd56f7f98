#include "kiln/text/impl/guidance/lark.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/guidance/json_schema.hpp"

namespace kiln::language::guidance {

namespace {

constexpr std::size_t most_parts = 100'000;  // of terminals, with those that they are made of in place

class compiler {
 public:
  explicit compiler(const lark_grammar& g) : g_(g) {
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
      case kind::schema: lark_fault(errc::malformed, item.line, "%json belongs in rules, whose names are lower case");
      case kind::name:
        if (!is_terminal_name(item.text) && !item.text.starts_with("COMMON."))
          lark_fault(errc::malformed, item.line, "a terminal is made of terminals, found the rule '" + item.text + "'");
        return named_terminal(item.text, item.line);
      default: break;
    }
    expression e;
    e.what = item.what == kind::sequence ? expression::kind::sequence
             : item.what == kind::choice ? expression::kind::choice
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
    }
    return from;
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
  automaton a_;
  std::map<std::string, std::uint32_t, std::less<>> rules_;  // of rules and terminals
  std::vector<std::pair<std::string, std::uint32_t>> open_;
  std::vector<std::string> path_;  // of terminals that are made of each other
  std::uint32_t skip_ = 0;
  std::size_t parts_ = 0;
};

}  // namespace

automaton automaton_of_lark(std::string_view text) {
  lark_grammar g = parse_lark(text);
  remove_left_recursion(g);
  return compiler(g).take();
}

}  // namespace kiln::language::guidance
