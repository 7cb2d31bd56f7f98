#include "kiln/core/object.hpp"
#include "kiln/graph/fold.hpp"

namespace kiln::detail {

// At run time operands and results are bytes (no conversion where dtype and compute type agree), and an undecidable
// comparison of dimensions, or an expression beyond all bounds, arrives as an exception.
small_vector<literal> fold_at_run_time(const operation& op, small_vector<evaluation::operand>& in,
                                       small_vector<evaluation::operand>& out, bool symbolic) try {
  if (symbolic) {
    evaluation e(in, out);
    op.evaluate(e, true);
    return e.literals();
  }
  small_vector<argument> operands;
  small_vector<buffer> results;
  for (evaluation::operand& o : in) {
    operands.push_back(argument(*o.constant));
    o.bytes = operands.back().data();
  }
  for (evaluation::operand& o : out) {
    results.push_back(buffer::allocate(static_cast<std::size_t>(o.type.bytes().value())));
    o.bytes = results.back().data();
  }
  evaluation e(in, out);
  op.evaluate(e, false);
  e.finish();
  small_vector<literal> literals;
  for (std::size_t k = 0; k < out.size(); ++k)
    literals.push_back(is_object(out[k].type.type) ? retained(out[k].type, results[k].data()).to_literal()
                                                   : literal(out[k].type, results[k]));
  return literals;
} catch (const error& e) {
  if (symbolic && (e.code() == errc::unsupported || e.code() == errc::limit)) return {};
  throw;
}

small_vector<literal> produce_literals(const operation& op, std::span<const literal* const> inputs) {
  small_vector<argument> in;
  for (const literal* l : inputs) {
    if (l->has_symbols()) return {};
    in.push_back(argument(*l));
  }
  small_vector<literal> out;
  for (const argument& a : op.produce(in)) out.push_back(a.to_literal());
  return out;
}

}  // namespace kiln::detail
