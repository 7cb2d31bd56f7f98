#include "kiln/graph/fold.hpp"

namespace kiln::detail {

// At run time operands and results are bytes (no conversion where dtype and compute type agree), and an undecidable
// comparison of dimensions arrives as an exception.
small_vector<literal> fold_at_run_time(const operation& op, small_vector<evaluation::operand>& in,
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

}  // namespace kiln::detail
