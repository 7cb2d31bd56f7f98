#include <algorithm>

#include "kiln/text/impl/jinja/parser.hpp"

namespace kiln::language::jinja {
void parser::run() {
  to_.top = parse_body({});
  if (now().kind != token_kind::end) fail_expected("the end of the template");
}

void parser::expect_block_end() {
  if (now().kind != token_kind::block_end) fail_expected("'%}'");
  next();
}

// Statements up to a tag of `end_names`, whose name is then the token at hand; up to the end where there are none.
body parser::parse_body(std::initializer_list<std::string_view> end_names) {
  const nested guard(*this);
  body b;
  const position begin = now().at;
  for (;;) {
    const position at = now().at;
    switch (now().kind) {
      case token_kind::data:
        b.push_back(make_statement(at, text_output{now().text}));
        next();
        break;
      case token_kind::variable_begin: {
        next();
        b.push_back(make_statement(at, value_output{parse_tuple(true, {})}));
        if (now().kind != token_kind::variable_end) fail_expected("'}}'");
        next();
        break;
      }
      case token_kind::block_begin: {
        next();
        if (now().kind != token_kind::name) fail_expected("the name of a tag");
        if (std::find(end_names.begin(), end_names.end(), now().text) != end_names.end()) return b;
        parse_tag(b);
        break;
      }
      default:
        if (end_names.size() == 0) return b;
        fail("expected '{% " + std::string(*(end_names.end() - 1)) + " %}' for what begins in line " +
             std::to_string(begin.line) + ", found " + describe(now()));
    }
  }
}

// The end of the tag at hand, a body, and the tag `end_name`.
body parser::parse_block(std::string_view end_name) {
  expect_block_end();
  body b = parse_body({end_name});
  next();
  expect_block_end();
  return b;
}

void parser::parse_tag(body& into) {
  const position at = now().at;
  const std::string tag = expect_name("the name of a tag");
  if (tag == "if") {
    into.push_back(parse_if(at));
  } else if (tag == "for") {
    into.push_back(parse_for(at));
  } else if (tag == "set") {
    into.push_back(parse_set(at));
  } else if (tag == "macro") {
    into.push_back(parse_macro(at));
  } else if (tag == "call") {
    into.push_back(parse_call(at));
  } else if (tag == "filter") {
    into.push_back(parse_filter_block(at));
  } else if (tag == "with") {
    into.push_back(parse_with(at));
  } else if (tag == "generation") {
    into.push_back(make_statement(at, scope_statement{parse_block("endgeneration")}));
  } else if (tag == "break" || tag == "continue") {
    if (loops_ == 0) fail_at(to_.name, at, "'" + tag + "' stands in a loop");
    into.push_back(tag == "break" ? make_statement(at, break_statement{}) : make_statement(at, continue_statement{}));
    expect_block_end();
  } else {
    fail_at(to_.name, at,
            "expected one of the tags if, for, set, macro, call, filter, with, raw, generation, break, continue" +
                std::string(tag.starts_with("end") || tag.starts_with("el") ? ", all opened ones being closed" : "") +
                ", found '" + tag + "'");
  }
}

const statement* parser::parse_if(position at) {
  if_statement s;
  for (;;) {
    expr test = parse_tuple(false, {});
    expect_block_end();
    s.branches.emplace_back(test, parse_body({"elif", "else", "endif"}));
    if (!skip_name("elif")) break;
  }
  if (skip_name("else")) {
    expect_block_end();
    s.otherwise = parse_body({"endif"});
  }
  next();
  expect_block_end();
  return make_statement(at, std::move(s));
}

const statement* parser::parse_for(position at) {
  for_statement s{parse_target({"in"}, false), nullptr, nullptr, false, {}, {}};
  if (!skip_name("in")) fail_expected("'in'");
  s.over = parse_tuple(false, {"recursive"});
  if (skip_name("if")) s.filter = parse_expression();
  s.is_recursive = skip_name("recursive");
  expect_block_end();
  ++loops_;
  s.inside = parse_body({"else", "endfor"});
  --loops_;
  if (skip_name("else")) {
    expect_block_end();
    s.otherwise = parse_body({"endfor"});
  }
  next();
  expect_block_end();
  return make_statement(at, std::move(s));
}

target parser::parse_one_target(bool with_namespace) {
  target t;
  t.at = now().at;
  if (skip_op("(")) {
    t = parse_target({}, false);
    expect_op(")");
    return t;
  }
  t.name = expect_name("a name to assign to");
  constexpr std::string_view fixed[] = {"true", "false", "none", "True", "False", "None"};
  if (std::find(std::begin(fixed), std::end(fixed), t.name) != std::end(fixed))
    fail_at(to_.name, t.at, "can't assign to '" + t.name + "'");
  if (with_namespace && skip_op(".")) t.attribute = expect_name("an attribute's name");
  return t;
}

target parser::parse_target(std::initializer_list<std::string_view> end_names, bool with_namespace) {
  const nested guard(*this);
  target first = parse_one_target(with_namespace);
  if (!at_op(",")) return first;
  target all;
  all.at = first.at;
  all.parts.push_back(std::move(first));
  while (skip_op(",")) {
    const bool ends = std::any_of(end_names.begin(), end_names.end(), [&](std::string_view n) { return at_name(n); });
    if (ends || at_op("=") || at_op(")") || now().kind == token_kind::block_end) break;
    all.parts.push_back(parse_one_target(with_namespace));
  }
  return all;
}

const statement* parser::parse_set(position at) {
  target to = parse_target({}, true);
  if (skip_op("=")) {
    expr v = parse_tuple(true, {});
    expect_block_end();
    return make_statement(at, set_statement{std::move(to), v});
  }
  set_block s{std::move(to), parse_filter_chain(), {}};
  s.inside = parse_block("endset");
  return make_statement(at, std::move(s));
}

std::vector<named_call> parser::parse_filter_chain() {
  std::vector<named_call> chain;
  while (skip_op("|")) chain.push_back(parse_filter());
  return chain;
}

void parser::parse_parameters(macro_statement& m) {
  expect_op("(");
  while (!at_op(")")) {
    if (!m.parameters.empty()) expect_op(",");
    if (at_op(")")) break;
    const position at = now().at;
    std::string name = expect_name("a parameter's name");
    expr otherwise = nullptr;
    if (skip_op("="))
      otherwise = parse_expression();
    else if (!m.parameters.empty() && m.parameters.back().second)
      fail_at(to_.name, at, "expected a default value for '" + name + "', as parameters before it have one");
    m.parameters.emplace_back(std::move(name), otherwise);
  }
  next();
}

void parser::parse_macro_body(macro_statement& m, std::string_view end_name) {
  const int loops = std::exchange(loops_, 0);
  std::set<std::string> outer = std::exchange(seen_, {});
  m.inside = parse_block(end_name);
  const auto reads = [&](const char* name) {
    return seen_.count(name) > 0 &&
           std::none_of(m.parameters.begin(), m.parameters.end(), [&](const auto& p) { return p.first == name; });
  };
  m.takes_rest = reads("varargs");
  m.takes_named = reads("kwargs");
  m.takes_caller = seen_.count("caller") > 0;
  seen_.merge(outer);
  loops_ = loops;
}

const statement* parser::parse_macro(position at) {
  macro_statement m;
  m.name = expect_name("a macro's name");
  parse_parameters(m);
  parse_macro_body(m, "endmacro");
  return make_statement(at, std::move(m));
}

const statement* parser::parse_call(position at) {
  call_block c;
  c.caller.name = "caller";
  if (at_op("(")) parse_parameters(c.caller);
  const position call_at = now().at;
  c.call = parse_expression();
  if (!std::holds_alternative<call_of>(c.call->node)) fail_at(to_.name, call_at, "expected a call of a macro");
  parse_macro_body(c.caller, "endcall");
  return make_statement(at, std::move(c));
}

const statement* parser::parse_filter_block(position at) {
  filter_block f;
  f.filters.push_back(parse_filter());
  for (named_call& more : parse_filter_chain()) f.filters.push_back(std::move(more));
  f.inside = parse_block("endfilter");
  return make_statement(at, std::move(f));
}

const statement* parser::parse_with(position at) {
  with_statement w;
  while (now().kind != token_kind::block_end) {
    if (!w.values.empty()) expect_op(",");
    target t = parse_one_target(false);
    expect_op("=");
    w.values.emplace_back(std::move(t), parse_expression());
  }
  w.inside = parse_block("endwith");
  return make_statement(at, std::move(w));
}

}  // namespace kiln::language::jinja
