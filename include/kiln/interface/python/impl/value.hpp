#pragma once
#include "kiln/graph/builder.hpp"
#include "kiln/interface/python/impl/bind.hpp"

namespace kiln::python {

/// A builder that its values keep alive, and how often it was finished: values of a finished program are refused.
struct builder_state {
  builder make;
  std::uint64_t finished = 0;
};

/// What Python calls a Builder.
struct held_builder {
  std::shared_ptr<builder_state> state = std::make_shared<builder_state>();
};

/// What Python calls a Value.
struct held_value {
  std::shared_ptr<builder_state> state;
  value is;
  std::uint64_t made = 0;

  held_value(std::shared_ptr<builder_state> s, value v) : state(std::move(s)), is(v), made(state->finished) {}
  /// The value; that of a finished program is an `invalid_argument` error.
  value get() const;
  /// Another value of the same builder.
  held_value with(value v) const { return {state, v}; }
  /// An operand: a Value of the same builder, a number, or an array, which becomes a constant.
  value operand(py::handle object) const;
};

/// Appends the op with that name to the builder of the first Value among the operands.
held_value append_op(const std::string& name, const py::args& operands, const py::kwargs& attributes);
/// Appends an operation to that builder.
held_value append_operation(const operation& op, const py::args& operands);

}  // namespace kiln::python
