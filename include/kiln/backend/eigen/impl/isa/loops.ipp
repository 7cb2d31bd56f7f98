#include "kiln/backend/eigen/impl/isa/tiles.hpp"
#include "kiln/kernel/row_loop.hpp"
#include "kiln/op/ops.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;
using namespace kernels::stage;

template <class... Loop>
row_run find_among(const block_step* program) {
  row_run found = nullptr;
  static_cast<void>(((Loop::stands_for(program) && (found = Loop::run)) || ...));
  return found;
}

// What ends softmax and the norms.
template <class Stored>
row_run find_storing(const block_step* program) {
  return find_among<row_loop<loaded, divided, Stored>, row_loop<loaded, computed<op::sub>, Stored>,
                    row_loop<loaded, computed<op::mul>, Stored>,
                    row_loop<loaded, computed<op::mul>, computed<op::mul>, Stored>,
                    row_loop<loaded, computed<op::mul>, computed<op::add>, Stored>,
                    row_loop<loaded, computed<op::mul>, computed<op::mul>, computed<op::add>, Stored>>(program);
}

// A reduction of what is loaded, or of what is computed first and kept for later levels.
template <class Fold>
row_run find_folding(const block_step* program) {
  return find_among<row_loop<loaded, Fold>, row_loop<loaded, computed<op::mul>, stored, Fold>,
                    row_loop<loaded, computed<op::add>, stored, Fold>,
                    row_loop<loaded, computed<op::add>, computed<op::add>, stored, Fold>>(program);
}

}  // namespace

row_run find_row_loop(const block_step* program) {
  for (const auto find : {find_storing<stored>, find_storing<streamed>, find_folding<folded<op::reduce_max>>,
                          find_folding<folded<op::reduce_sum>>, find_folding<folded<op::reduce_mean>>})
    if (const row_run f = find(program)) return f;
  return find_among<row_loop<loaded, folded<op::reduce_min>>,
                    row_loop<loaded, computed<op::mul>, computed<op::add>, stored, folded<op::reduce_max>>,
                    row_loop<loaded, divided, computed<op::add>, stored, folded<op::reduce_max>>,
                    row_loop<loaded, computed<op::sub>, computed<op::exp>, stored, folded<op::reduce_sum>>,
                    row_loop<loaded, computed<op::sub>, stored, computed<op::exp>, folded<op::reduce_sum>>,
                    row_loop<loaded, computed<op::mul>, folded<op::reduce_mean>>,
                    row_loop<loaded, computed<op::mul>, folded<op::reduce_sum>>,
                    row_loop<loaded, computed<op::sub>, stored, computed<op::mul>, folded<op::reduce_mean>>>(program);
}

}  // namespace kiln::eigen
