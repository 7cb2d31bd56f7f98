#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/text/impl/jinja/ast.hpp"
#include "kiln/text/impl/jinja/native.hpp"

namespace kiln::language::jinja {

/// Names of one block; reading goes outwards, setting stays.
struct scope : object {
  explicit scope(scope* o) : outer(o) {}
  std::string_view type_name() const override { return "scope"; }
  value* find(std::string_view name);
  void set(std::string_view name, value v);
  scope* outer;
  bool is_captured = false;  ///< a macro refers to it
  std::vector<std::pair<std::string_view, value>> names;
};

/// namespace(): attributes that `set` changes from inner blocks.
struct name_space : object {
  std::string_view type_name() const override { return "Namespace"; }
  std::optional<value> attribute(interpreter&, std::string_view name) override;
  dict_object* attributes = nullptr;
};

/// How a statement ended.
enum class flow : std::uint8_t { normal, leave, next };

/// One render of a program.
class interpreter {
 public:
  interpreter(const program& p, const limits& bounds) : values(bounds.value_bytes), program_(p), bounds_(bounds) {}
  std::string run(std::string_view variables_json);

  value evaluate(expr);
  bool evaluate_condition(expr e) { return is_true(evaluate(e)); }
  value call(const value& callee, const arguments&);
  /// `of.name` and `of[key]`.
  value attribute(const value& of, std::string_view name);
  value item(const value& of, const value& key);
  /// A path of names and numbers between dots, as filters take it.
  value item_by_path(value of, const value& path);
  value filter(std::string_view name, const value& operand, const arguments&);
  bool test(std::string_view name, const value& operand, const arguments&);
  /// What a `for` over the value visits; throws `error` where there is nothing to visit.
  std::vector<value> items_of(const value&);
  value text(std::string bytes) { return values.string(std::move(bytes)); }
  /// Counts work; throws `error` (limit) above the bound.
  void step(std::size_t n = 1);

  value call_macro(const macro_statement&, scope* outer, const arguments&);
  /// The text that a loop over a value writes, for recursive loops.
  value run_loop_again(const for_statement&, scope* outer, const value& over, int depth);
  bool passes_filter(const for_statement&, scope* outer, const value& item);

  heap values;

 private:
  /// Counts what is under way inside each other.
  struct deeper {
    explicit deeper(interpreter& i);
    ~deeper() { --of.depth_; }
    deeper(const deeper&) = delete;
    deeper& operator=(const deeper&) = delete;
    interpreter& of;
  };
  /// Puts a scope in place until its end.
  struct in_scope {
    in_scope(interpreter& i, scope* s) : of(i), before(std::exchange(i.scope_, s)) {}
    ~in_scope() { of.scope_ = before; }
    in_scope(const in_scope&) = delete;
    in_scope& operator=(const in_scope&) = delete;
    interpreter& of;
    scope* before;
  };

  scope* new_scope(scope* outer) { return values.make<scope>(outer); }
  value lookup(const std::string& name);
  arguments evaluate_arguments(const call_arguments&);
  void write(std::string_view);
  template <class F> std::string captured(F f);
  void assign(const target&, const value&);
  value apply(const std::vector<named_call>& filters, value to);
  flow execute(const body&);
  flow run_loop(const for_statement&, scope* outer, const value& over, int depth);

  value eval(const constant& n, position) { return n.v; }
  value eval(const variable& n, position) { return lookup(n.name); }
  value eval(const display&, position);
  value eval(const dict_display&, position);
  value eval(const unary&, position);
  value eval(const binary&, position);
  value eval(const concatenation&, position);
  value eval(const logical&, position);
  value eval(const comparison&, position);
  value eval(const conditional&, position);
  value eval(const attribute_of&, position);
  value eval(const subscript&, position);
  value eval(const slice_of&, position);
  value eval(const call_of&, position);
  value eval(const filtered&, position);
  value eval(const tested&, position);

  flow exec(const text_output& s) { return write(s.text), flow::normal; }
  flow exec(const value_output&);
  flow exec(const if_statement&);
  flow exec(const for_statement&);
  flow exec(const set_statement&);
  flow exec(const set_block&);
  flow exec(const macro_statement&);
  flow exec(const call_block&);
  flow exec(const filter_block&);
  flow exec(const with_statement&);
  flow exec(const scope_statement&);
  flow exec(const break_statement&) { return flow::leave; }
  flow exec(const continue_statement&) { return flow::next; }

  const program& program_;
  const limits& bounds_;
  scope* scope_ = nullptr;
  std::string* out_ = nullptr;
  position at_;
  std::size_t steps_ = 0;
  int depth_ = 0;
};

}  // namespace kiln::language::jinja
