#pragma once
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/text/impl/jinja/lexer.hpp"
#include "kiln/text/impl/jinja/value.hpp"

// What a template says, as a tree; a program owns all nodes.
namespace kiln::language::jinja {

struct expression;
using expr = const expression*;

struct call_arguments {
  std::vector<expr> positional;
  std::vector<std::pair<std::string, expr>> named;
  expr rest_list = nullptr, rest_dict = nullptr;  ///< *list, **dict
};
/// A filter or test with its arguments.
struct named_call {
  std::string name;
  call_arguments arguments;
};

enum class arithmetic : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class comparing : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

struct constant {
  value v;
};
struct variable {
  std::string name;
};
struct display {
  bool is_tuple;
  std::vector<expr> items;
};
struct dict_display {
  std::vector<std::pair<expr, expr>> entries;
};
enum class unary_op : std::uint8_t { negate, plus, logical_not };
struct unary {
  unary_op op;
  expr of;
};
struct binary {
  arithmetic op;
  expr left, right;
};
struct concatenation {
  std::vector<expr> parts;
};
struct logical {
  bool is_or;
  expr left, right;
};
struct comparison {
  expr first;
  std::vector<std::pair<comparing, expr>> rest;
};
struct conditional {
  expr test, then, otherwise;  ///< otherwise may be null
};
struct attribute_of {
  expr of;
  std::string name;
};
struct subscript {
  expr of, key;
};
struct slice_of {
  expr of, begin, end, step;  ///< the last three may be null
};
struct call_of {
  expr callee;
  call_arguments arguments;
};
struct filtered {
  expr of;
  named_call filter;
};
struct tested {
  expr of;
  named_call test;
};

struct expression {
  position at;
  std::variant<constant, variable, display, dict_display, unary, binary, concatenation, logical, comparison,
               conditional, attribute_of, subscript, slice_of, call_of, filtered, tested>
      node;
};

struct statement;
using body = std::vector<const statement*>;

/// What a value is given to: a name, an attribute of a namespace, or several of them.
struct target {
  std::string name, attribute;
  std::vector<target> parts;
  position at;
};
struct text_output {
  std::string text;
};
struct value_output {
  expr of;
};
struct if_statement {
  std::vector<std::pair<expr, body>> branches;
  body otherwise;
};
struct for_statement {
  target to;
  expr over, filter;  ///< filter may be null
  bool is_recursive;
  body inside, otherwise;
};
struct set_statement {
  target to;
  expr to_value;
};
struct set_block {
  target to;
  std::vector<named_call> filters;
  body inside;
};
struct macro_statement {
  std::string name;
  std::vector<std::pair<std::string, expr>> parameters;  ///< defaults may be null
  body inside;
  bool takes_rest = false, takes_named = false, takes_caller = false;  ///< varargs, kwargs, caller are used
};
struct call_block {
  macro_statement caller;
  expr call;  ///< a call_of
};
struct filter_block {
  std::vector<named_call> filters;
  body inside;
};
struct with_statement {
  std::vector<std::pair<target, expr>> values;
  body inside;
};
struct scope_statement {
  body inside;
};
struct break_statement {};
struct continue_statement {};

struct statement {
  position at;
  std::variant<text_output, value_output, if_statement, for_statement, set_statement, set_block, macro_statement,
               call_block, filter_block, with_statement, scope_statement, break_statement, continue_statement>
      node;
};

struct program {
  std::string name;
  heap constants{std::size_t{1} << 30};
  std::deque<expression> expressions;
  std::deque<statement> statements;
  body top;
};

}  // namespace kiln::language::jinja
