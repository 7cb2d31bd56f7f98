#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "kiln/text/impl/jinja/parser.hpp"

namespace kiln::language::jinja {

bool parser::skip_op(std::string_view text) { return at_op(text) && (next(), true); }
bool parser::skip_name(std::string_view text) { return at_name(text) && (next(), true); }
void parser::expect_op(std::string_view text) {
  if (!skip_op(text)) fail_expected("'" + std::string(text) + "'");
}
std::string parser::expect_name(std::string_view what) {
  if (now().kind != token_kind::name) fail_expected(std::string(what));
  std::string name = now().text;
  next();
  return name;
}

expr parser::parse_expression(bool with_conditional) {
  const nested guard(*this);
  if (!with_conditional) return parse_or();
  const position at = now().at;
  expr left = parse_or();
  while (skip_name("if")) {
    expr test = parse_or();
    expr otherwise = skip_name("else") ? parse_expression() : nullptr;
    left = make(at, conditional{test, left, otherwise});
  }
  return left;
}

expr parser::parse_or() {
  const position at = now().at;
  expr left = parse_and();
  while (skip_name("or")) {
    expr right = parse_and();
    left = make(at, logical{true, left, right});
  }
  return left;
}

expr parser::parse_and() {
  const position at = now().at;
  expr left = parse_not();
  while (skip_name("and")) {
    expr right = parse_not();
    left = make(at, logical{false, left, right});
  }
  return left;
}

expr parser::parse_not() {
  const position at = now().at;
  if (!skip_name("not")) return parse_comparison();
  const nested guard(*this);
  return make(at, unary{unary_op::logical_not, parse_not()});
}

expr parser::parse_comparison() {
  const position at = now().at;
  expr first = parse_sum();
  std::vector<std::pair<comparing, expr>> rest;
  constexpr std::pair<std::string_view, comparing> signs[] = {
      {"==", comparing::equal},      {"!=", comparing::not_equal}, {"<", comparing::less},
      {"<=", comparing::less_equal}, {">", comparing::greater},    {">=", comparing::greater_equal}};
  for (;;) {
    const auto* sign = std::find_if(std::begin(signs), std::end(signs), [&](const auto& s) { return at_op(s.first); });
    comparing op = comparing::in;
    if (sign != std::end(signs)) {
      op = sign->second;
    } else if (at_name("not") && is_name(ahead(), "in")) {
      op = comparing::not_in;
      next();
    } else if (!at_name("in")) {
      break;
    }
    next();
    rest.emplace_back(op, parse_sum());
  }
  return rest.empty() ? first : make(at, comparison{first, std::move(rest)});
}

expr parser::parse_sum() {
  expr left = parse_concatenation();
  while (at_op("+") || at_op("-")) {
    const position at = now().at;
    const arithmetic op = at_op("+") ? arithmetic::add : arithmetic::subtract;
    next();
    expr right = parse_concatenation();
    left = make(at, binary{op, left, right});
  }
  return left;
}

expr parser::parse_concatenation() {
  const position at = now().at;
  std::vector<expr> parts{parse_product()};
  while (skip_op("~")) parts.push_back(parse_product());
  return parts.size() == 1 ? parts[0] : make(at, concatenation{std::move(parts)});
}

expr parser::parse_product() {
  expr left = parse_power();
  constexpr std::pair<std::string_view, arithmetic> signs[] = {{"*", arithmetic::multiply},
                                                               {"/", arithmetic::divide},
                                                               {"//", arithmetic::floor_divide},
                                                               {"%", arithmetic::modulo}};
  for (;;) {
    const auto* sign = std::find_if(std::begin(signs), std::end(signs), [&](const auto& s) { return at_op(s.first); });
    if (sign == std::end(signs)) return left;
    const position at = now().at;
    next();
    expr right = parse_power();
    left = make(at, binary{sign->second, left, right});
  }
}

expr parser::parse_power() {
  expr left = parse_unary();
  while (at_op("**")) {
    const position at = now().at;
    next();
    expr right = parse_unary();
    left = make(at, binary{arithmetic::power, left, right});
  }
  return left;
}

expr parser::parse_unary(bool with_filters) {
  const position at = now().at;
  expr of = nullptr;
  if (at_op("-") || at_op("+")) {
    const nested guard(*this);
    const unary_op op = at_op("-") ? unary_op::negate : unary_op::plus;
    next();
    of = make(at, unary{op, parse_unary(false)});
  } else {
    of = parse_primary();
  }
  of = parse_postfix(of);
  return with_filters ? parse_filters_and_tests(of) : of;
}

expr parser::parse_primary() {
  const lexeme token = now();
  switch (token.kind) {
    case token_kind::name: {
      next();
      const std::string& n = token.text;
      if (n == "true" || n == "True" || n == "false" || n == "False")
        return make(token.at, constant{n[0] == 't' || n[0] == 'T'});
      if (n == "none" || n == "None") return make(token.at, constant{value::none()});
      if (n == "varargs" || n == "kwargs" || n == "caller") seen_.insert(n);
      return make(token.at, variable{n});
    }
    case token_kind::string: {
      std::string text;
      for (; now().kind == token_kind::string; next()) text += now().text;
      return make(token.at, constant{to_.constants.string(std::move(text))});
    }
    case token_kind::integer:
    case token_kind::real: return parse_number();
    default: break;
  }
  if (skip_op("(")) {
    expr inside = parse_tuple(true, {}, ")");
    expect_op(")");
    return inside;
  }
  if (skip_op("[")) {
    std::vector<expr> items;
    while (!at_op("]")) {
      if (!items.empty()) expect_op(",");
      if (at_op("]")) break;
      items.push_back(parse_expression());
    }
    next();
    return make(token.at, display{false, std::move(items)});
  }
  if (at_op("{")) return parse_dict();
  fail_expected("an expression");
}

expr parser::parse_number() {
  const lexeme token = now();
  next();
  const std::string& text = token.text;
  if (token.kind == token_kind::real) return make(token.at, constant{std::strtod(text.c_str(), nullptr)});
  const char mark = text.size() > 1 ? static_cast<char>(text[1] | 32) : '\0';
  const int base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
  std::int64_t n = 0;
  const auto [end, failed] = std::from_chars(text.data() + (base == 10 ? 0 : 2), text.data() + text.size(), n, base);
  if (failed == std::errc::result_out_of_range)
    fail_at(to_.name, token.at, "expected an integer of 64 bits, found " + text);
  if (failed != std::errc() || end != text.data() + text.size() || (base == 10 && text[0] == '0' && n != 0))
    fail_at(to_.name, token.at, "expected an integer, found " + text);
  return make(token.at, constant{n});
}

expr parser::parse_dict() {
  const position at = now().at;
  expect_op("{");
  dict_display d;
  while (!at_op("}")) {
    if (!d.entries.empty()) expect_op(",");
    if (at_op("}")) break;
    expr key = parse_expression();
    expect_op(":");
    d.entries.emplace_back(key, parse_expression());
  }
  next();
  return make(at, std::move(d));
}

expr parser::parse_tuple(bool with_conditional, std::initializer_list<std::string_view> end_names,
                         std::string_view closing) {
  const position at = now().at;
  const auto is_end = [&] {
    if (now().kind == token_kind::variable_end || now().kind == token_kind::block_end || at_op(")")) return true;
    return std::any_of(end_names.begin(), end_names.end(), [&](std::string_view n) { return at_name(n); });
  };
  std::vector<expr> items;
  bool is_tuple = false;
  while (!is_end()) {
    items.push_back(parse_expression(with_conditional));
    if (!at_op(",")) break;
    is_tuple = true;
    next();
  }
  if (!is_tuple && items.size() == 1) return items[0];
  if (items.empty() && closing.empty()) fail_expected("an expression");
  return make(at, display{true, std::move(items)});
}

expr parser::parse_postfix(expr of) {
  for (;;) {
    if (at_op(".") || at_op("[")) {
      of = parse_subscript(of);
    } else if (at_op("(")) {
      const position at = now().at;
      of = make(at, call_of{of, parse_arguments()});
    } else {
      return of;
    }
  }
}

expr parser::parse_filters_and_tests(expr of) {
  for (;;) {
    const position at = now().at;
    if (skip_op("|")) {
      of = make(at, filtered{of, parse_filter()});
    } else if (at_name("is")) {
      of = parse_test(of);
    } else if (at_op("(")) {  // calls what a filter gives
      of = make(at, call_of{of, parse_arguments()});
    } else {
      return of;
    }
  }
}

named_call parser::parse_filter() {
  named_call f{expect_name("the name of a filter"), {}};
  while (skip_op(".")) f.name += "." + expect_name("the name of a filter");
  if (at_op("(")) f.arguments = parse_arguments();
  return f;
}

expr parser::parse_test(expr of) {
  const position at = now().at;
  next();  // is
  const bool is_negated = skip_name("not");
  tested t{of, {expect_name("the name of a test"), {}}};
  while (skip_op(".")) t.test.name += "." + expect_name("the name of a test");
  const token_kind k = now().kind;
  const bool is_operand = k == token_kind::name || k == token_kind::string || k == token_kind::integer ||
                          k == token_kind::real || at_op("[") || at_op("{");
  if (at_op("(")) {
    t.test.arguments = parse_arguments();
  } else if (is_operand && !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) fail("one 'is' can't follow another");
    expr argument = parse_primary();
    t.test.arguments.positional.push_back(parse_postfix(argument));
  }
  expr made = make(at, std::move(t));
  return is_negated ? make(at, unary{unary_op::logical_not, made}) : made;
}

expr parser::parse_subscript(expr of) {
  const position at = now().at;
  if (skip_op(".")) {
    if (now().kind == token_kind::integer) return make(at, subscript{of, parse_number()});
    return make(at, attribute_of{of, expect_name("an attribute's name")});
  }
  next();  // [
  expr first = parse_subscript_item(of);
  if (!at_op(",")) {
    expect_op("]");
    return first;
  }
  std::vector<expr> keys;
  const auto key_of = [&](expr e) {
    const auto* s = std::get_if<subscript>(&e->node);
    if (!s) fail("a slice stands alone between '[' and ']'");
    return s->key;
  };
  keys.push_back(key_of(first));
  while (skip_op(",")) keys.push_back(key_of(parse_subscript_item(of)));
  expect_op("]");
  return make(at, subscript{of, make(at, display{true, std::move(keys)})});
}

expr parser::parse_subscript_item(expr of) {
  const position at = now().at;
  expr parts[3] = {};
  const auto is_end = [&] { return at_op("]") || at_op(",") || at_op(":"); };
  if (!at_op(":")) {
    parts[0] = parse_expression();
    if (!at_op(":")) return make(at, subscript{of, parts[0]});
  }
  for (int i = 1; i < 3 && skip_op(":"); ++i)
    if (!is_end()) parts[i] = parse_expression();
  return make(at, slice_of{of, parts[0], parts[1], parts[2]});
}

call_arguments parser::parse_arguments() {
  call_arguments a;
  expect_op("(");
  bool is_first = true;
  while (!at_op(")")) {
    if (!is_first) expect_op(",");
    if (at_op(")")) break;
    is_first = false;
    if (skip_op("*")) {
      if (a.rest_list || a.rest_dict) fail("expected at most one '*' argument, before '**'");
      a.rest_list = parse_expression();
    } else if (skip_op("**")) {
      if (a.rest_dict) fail("expected at most one '**' argument");
      a.rest_dict = parse_expression();
    } else if (now().kind == token_kind::name && is_op(ahead(), "=")) {
      if (a.rest_dict) fail("expected '**' as the last argument");
      std::string name = expect_name("a name");
      next();
      a.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (!a.named.empty() || a.rest_list || a.rest_dict) fail("expected positional arguments before named ones");
      a.positional.push_back(parse_expression());
    }
  }
  next();
  return a;
}

}  // namespace kiln::language::jinja
