#pragma once
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/text/impl/jinja/ast.hpp"

namespace kiln::language::jinja {

/// Recursive descent with Jinja's precedence; the bodies are parse_expression.ipp and parse_statement.ipp.
class parser {
 public:
  parser(program& to, std::vector<lexeme> tokens) : to_(to), tokens_(std::move(tokens)) {}
  void run();

 private:
  static constexpr int most_nested = 150;  ///< brackets and blocks inside each other
  struct nested {
    explicit nested(parser& p) : of(p) {
      if (++of.depth_ > most_nested)
        of.fail("expressions and blocks nest at most " + std::to_string(most_nested) + " deep");
    }
    ~nested() { --of.depth_; }
    nested(const nested&) = delete;
    nested& operator=(const nested&) = delete;
    parser& of;
  };

  const lexeme& now() const { return tokens_[at_]; }
  const lexeme& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  void next() { at_ += at_ + 1 < tokens_.size() ? 1 : 0; }
  static bool is_op(const lexeme& t, std::string_view text) { return t.kind == token_kind::op && t.text == text; }
  static bool is_name(const lexeme& t, std::string_view text) { return t.kind == token_kind::name && t.text == text; }
  bool at_op(std::string_view text) const { return is_op(now(), text); }
  bool at_name(std::string_view text) const { return is_name(now(), text); }
  bool skip_op(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_op(std::string_view text);
  std::string expect_name(std::string_view what);
  void expect_block_end();
  [[noreturn]] void fail(const std::string& message) const { fail_at(to_.name, now().at, message); }
  [[noreturn]] void fail_expected(const std::string& what) const {
    fail("expected " + what + ", found " + describe(now()));
  }

  template <class T> expr make(position at, T node) {
    return &to_.expressions.emplace_back(expression{at, std::move(node)});
  }
  template <class T> const statement* make_statement(position at, T node) {
    return &to_.statements.emplace_back(statement{at, std::move(node)});
  }

  // parse_expression.ipp
  expr parse_expression(bool with_conditional = true);
  expr parse_or();
  expr parse_and();
  expr parse_not();
  expr parse_comparison();
  expr parse_sum();
  expr parse_concatenation();
  expr parse_product();
  expr parse_power();
  expr parse_unary(bool with_filters = true);
  expr parse_primary();
  expr parse_number();
  expr parse_postfix(expr of);
  expr parse_filters_and_tests(expr of);
  expr parse_subscript(expr of);
  expr parse_subscript_item(expr of);
  expr parse_test(expr of);
  expr parse_dict();
  /// Expressions between commas; one without a comma stands for itself. `closing` ends the list.
  expr parse_tuple(bool with_conditional, std::initializer_list<std::string_view> end_names,
                   std::string_view closing = {});
  named_call parse_filter();
  call_arguments parse_arguments();

  // parse_statement.ipp
  body parse_body(std::initializer_list<std::string_view> end_names);
  body parse_block(std::string_view end_name);
  void parse_tag(body& into);
  const statement* parse_if(position at);
  const statement* parse_for(position at);
  const statement* parse_set(position at);
  const statement* parse_macro(position at);
  const statement* parse_call(position at);
  const statement* parse_filter_block(position at);
  const statement* parse_with(position at);
  void parse_parameters(macro_statement& m);
  void parse_macro_body(macro_statement& m, std::string_view end_name);
  std::vector<named_call> parse_filter_chain();
  target parse_target(std::initializer_list<std::string_view> end_names, bool with_namespace);
  target parse_one_target(bool with_namespace);

  program& to_;
  std::vector<lexeme> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
  std::set<std::string> seen_;  ///< special names read in the macro at hand
};

}  // namespace kiln::language::jinja
