#include "kiln/backend/eigen/impl/isa/tiles.hpp"
#include "kiln/kernel/row_loop.hpp"
#include "kiln/op/ops.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;
using namespace kernels::stage;

template <class... Loop>
block_run find_among(const block_step* program) {
  block_run found = nullptr;
  static_cast<void>(((Loop::stands_for(program) && (found = Loop::run)) || ...));
  return found;
}

// The levels of softmax and of the norms, with the sum that comes before a norm, and of plain reductions.
template <class Stored>
block_run find_storing(const block_step* program) {
  return find_among<row_loop<loaded, divided, Stored>, row_loop<loaded, computed<op::mul>, Stored>,
                    row_loop<loaded, computed<op::mul>, computed<op::mul>, Stored>,
                    row_loop<loaded, computed<op::mul>, computed<op::mul>, computed<op::add>, Stored>>(program);
}

}  // namespace

block_run find_row_loop(const block_step* program) {
  if (const block_run f = find_storing<stored>(program)) return f;
  if (const block_run f = find_storing<streamed>(program)) return f;
  return find_among<row_loop<loaded, folded<op::reduce_max>>, row_loop<loaded, folded<op::reduce_min>>,
                    row_loop<loaded, folded<op::reduce_sum>>, row_loop<loaded, folded<op::reduce_mean>>,
                    row_loop<loaded, computed<op::sub>, computed<op::exp>, stored, folded<op::reduce_sum>>,
                    row_loop<loaded, computed<op::mul>, folded<op::reduce_mean>>,
                    row_loop<loaded, computed<op::sub>, stored, computed<op::mul>, folded<op::reduce_mean>>,
                    row_loop<loaded, computed<op::add>, stored, folded<op::reduce_mean>>,
                    row_loop<loaded, computed<op::add>, computed<op::add>, stored, folded<op::reduce_mean>>>(program);
}

}  // namespace kiln::eigen
