#pragma once
#include "kiln/graph/module.hpp"

namespace kiln {

namespace detail {
// At run time operands and results are bytes (no conversion where dtype and compute type agree), and an undecidable
// comparison of dimensions arrives as an exception.
template <class Operation>
small_vector<literal> fold_at_run_time(const Operation& op, small_vector<evaluation::operand>& in,
                                       small_vector<evaluation::operand>& out, bool symbolic) try {
  if (symbolic) {
    evaluation e(in, out);
    op.evaluate(e, true);
    return e.literals();
  }
  small_vector<buffer> results;
  for (evaluation::operand& o : in) o.bytes = const_cast<std::byte*>(o.constant->bytes());  // inputs are only read
  for (evaluation::operand& o : out) {
    results.push_back(buffer::allocate(static_cast<std::size_t>(o.type.bytes().value())));
    o.bytes = results.back().data();
  }
  evaluation e(in, out);
  op.evaluate(e, false);
  e.finish();
  small_vector<literal> literals;
  for (std::size_t k = 0; k < out.size(); ++k) literals.push_back(literal(out[k].type, results[k]));
  return literals;
} catch (const error& e) {
  if (symbolic && e.code() == errc::unsupported) return {};
  throw;
}
}  // namespace detail

/// Computes an op over constants through its own reference computation. Shape arithmetic with symbols is computed over
/// dimensions where the op's text allows. Empty when the op is impure or control, a shape stays symbolic, or a symbolic
/// comparison is undecidable.
template <class Operation>
constexpr small_vector<literal> fold(const Operation& op, std::span<const literal* const> inputs,
                                     std::span<const shape> results) {
  const op_info& info = op.info();
  if (!info.pure || info.kind == op_kind::control) return {};
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
  if (std::is_constant_evaluated()) {
    evaluation e(in, out);
    op.evaluate(e, symbolic);
    return e.literals();
  }
  return detail::fold_at_run_time(op, in, out, symbolic);
}

}  // namespace kiln
