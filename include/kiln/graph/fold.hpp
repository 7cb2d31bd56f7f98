#pragma once
#include "kiln/graph/module.hpp"

namespace kiln {

namespace detail {
// At run time operands and results are bytes, and an undecidable comparison of dimensions arrives as an exception
// (compiled in graph/impl).
small_vector<literal> fold_at_run_time(const operation& op, small_vector<evaluation::operand>& in,
                                       small_vector<evaluation::operand>& out, bool symbolic);
// The results of a producing op over constants; none where one holds symbols.
small_vector<literal> produce_literals(const operation& op, std::span<const literal* const> inputs);
}  // namespace detail

/// Computes an op over constants through its own reference computation. Shape arithmetic with symbols is computed over
/// dimensions where the op's text allows. Empty when the op is impure or control, a shape stays symbolic, or a symbolic
/// comparison is undecidable.
template <class Operation>
constexpr small_vector<literal> fold(const Operation& op, std::span<const literal* const> inputs,
                                     std::span<const shape> results) {
  const op_info& info = op.info();
  if (!info.pure || info.kind == op_kind::control || info.kind == op_kind::dynamic) return {};
  bool symbolic = false;
  small_vector<evaluation::operand> in, out;
  for (const literal* l : inputs) {
    if (!l->get_shape().is_constant()) return {};
    symbolic = symbolic || l->has_symbols();
    in.push_back({l->get_shape(), l, nullptr});
  }
  if (symbolic && !info.folds_dimensions) return {};
  for (const shape& s : results) {
    if (!s.is_constant() || (symbolic && is_float(s.type))) return {};  // dimensions divide as integers
    out.push_back({s, nullptr, nullptr});
  }
  if constexpr (std::is_same_v<Operation, operation>) {
    return detail::fold_at_run_time(op, in, out, symbolic);
  } else {
    evaluation e(in, out);
    op.evaluate(e, symbolic);
    return e.literals();
  }
}

}  // namespace kiln
