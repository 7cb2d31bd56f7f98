#pragma once
#include <deque>

#include "kiln/text/impl/jinja/interpreter.hpp"

namespace kiln::language::jinja {

/// The variable `loop`; it reads ahead only when asked what follows.
class loop_object : public object {
 public:
  loop_object(const for_statement& s, scope* outer, list_object* source, int depth)
      : statement_(s), outer_(outer), source_(source), depth_(depth) {}

  std::string_view type_name() const override { return "LoopContext"; }
  bool is_callable() const override { return statement_.is_recursive; }
  value call(interpreter&, const arguments&) override;
  std::optional<value> attribute(interpreter&, std::string_view name) override;
  /// Goes to the next item; false after the last.
  bool advance(interpreter&);
  const value& current() const { return current_; }
  std::int64_t index() const { return index_; }
  /// Whether the values differ from those of the last call.
  bool is_changed(const std::vector<value>& now);

 private:
  bool read_ahead(interpreter&);
  std::int64_t length(interpreter&);

  const for_statement& statement_;
  scope* outer_;
  list_object* source_;
  std::size_t cursor_ = 0;
  std::int64_t index_ = -1;
  std::deque<value> ahead_;
  value current_, previous_;
  std::optional<std::vector<value>> last_;
  int depth_;
};

}  // namespace kiln::language::jinja
