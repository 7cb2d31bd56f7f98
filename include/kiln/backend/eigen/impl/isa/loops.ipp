#include "kiln/backend/eigen/impl/isa/tiles.hpp"
#include "kiln/kernel/pointwise/loop_rounding.hpp"
#include "kiln/kernel/pointwise/rotation_loop.hpp"
#include "kiln/op/ops.hpp"

namespace kiln::eigen {
namespace {

using namespace kernels;
using namespace kernels::loop_steps;

// The wide steps of a level, and which places follow the rows.
struct level_steps {
  const block_step* program;
  const block_advance* moves;
  std::size_t count;
};

template <class... Loop> row_run find_among(const level_steps& l) {
  row_run found = nullptr;
  static_cast<void>(((Loop::stands_for(l.program, l.moves, l.count) && (found = Loop::run)) || ...));
  return found;
}

// A normalization, then an activation, or parts of that: factors and addends per channel, or one for all.
template <class Stored> row_run find_affine(const level_steps& l) {
  using scaled = computed<op::mul>;
  using shifted = computed<op::add>;
  using all_scaled = computed_by<op::mul>;
  using all_shifted = computed_by<op::add>;
  using active = computed<op::relu>;
  return find_among<row_loop<loaded, scaled, shifted, active, Stored>, row_loop<loaded, scaled, shifted, Stored>,
                    row_loop<loaded, shifted, active, Stored>, row_loop<loaded, active, Stored>,
                    row_loop<loaded, all_scaled, all_shifted, active, Stored>,
                    row_loop<loaded, all_scaled, all_shifted, Stored>, row_loop<loaded, all_shifted, active, Stored>>(
      l);
}

// An activation by itself, or after a bias. A step of many instructions otherwise loops over a block in memory, which
// took a fifth of GELU's time; exp's step holds more vectors than its constants leave registers for.
template <class Stored> row_run find_activation(const level_steps& l) {
  return find_among<row_loop<loaded, computed<op::gelu>, Stored>, row_loop<loaded, computed<op::sigmoid>, Stored>,
                    row_loop<loaded, computed<op::tanh>, Stored>, row_loop<loaded, computed<op::exp>, Stored>,
                    row_loop<loaded, computed<op::add>, computed<op::gelu>, Stored>>(l);
}

// Plain arithmetic: of values in L2, calls from step to step were a tenth of the time.
template <class Stored> row_run find_arithmetic(const level_steps& l) {
  return find_among<row_loop<loaded, computed<op::sub>, Stored>, row_loop<loaded, computed<op::div>, Stored>,
                    row_loop<loaded, computed<op::abs>, Stored>, row_loop<loaded, computed<op::neg>, Stored>,
                    row_loop<loaded, computed<op::sqrt>, Stored>, row_loop<loaded, computed<op::recip>, Stored>>(l);
}

// The last levels of softmax and the norms.
template <class Stored> row_run find_storing(const level_steps& l) {
  using scaled = computed_by<op::mul>;
  return find_among<row_loop<loaded, divided, Stored>, row_loop<loaded, computed_by<op::sub>, Stored>,
                    row_loop<loaded, scaled, Stored>, row_loop<loaded, computed<op::mul>, Stored>,
                    row_loop<loaded, computed<op::add>, Stored>, row_loop<loaded, scaled, computed<op::mul>, Stored>,
                    row_loop<loaded, computed<op::mul>, scaled, Stored>,
                    row_loop<loaded, scaled, computed<op::add>, Stored>,
                    row_loop<loaded, scaled, computed<op::mul>, computed<op::add>, Stored>,
                    row_loop<loaded, divided, computed<op::mul>, computed<op::add>, Stored>>(l);
}

// A rotary embedding of a row's halves. Where a norm computes them first, what both products of a half give is put
// aside, and both halves' own values are.
template <class Stored> row_run find_rotation(const level_steps& l) {
  using scaled = computed_by<op::mul>;
  using product = computed<op::mul>;
  return find_among<rotation_loop<Stored>, row_loop<loaded, scaled, product, held, product, held, loaded, scaled,
                                                    product, held, product, computed_with<op::sub, 1>, Stored, reloaded,
                                                    product, held, reloaded, product, computed_with<op::add>, Stored>>(
      l);
}

// The same of 16-bit floats: halves and factors are put aside as floats, and each product and sum is rounded.
template <block_form Form> row_run find_rotation_of(const level_steps& l) {
  using in = loaded_as<Form>;
  using out = stored_as<Form>;
  using rounded = rounded_to<Form>;
  using product = computed_with<op::mul>;
  return find_among<row_loop<in, held, in, held, in, held, in, held, reloaded, product, rounded, held, reloaded,
                             product, rounded, computed_with<op::sub, 1>, rounded, out, reloaded, product, rounded,
                             held, reloaded, product, rounded, computed_with<op::add>, rounded, out>>(l);
}

// Floats quantized to bytes by one scale.
template <block_form Form> row_run find_quantizing(const level_steps& l) {
  return find_among<row_loop<loaded, divided, rounded, computed_by<op::add>, bounded, stored_as<Form>>,
                    row_loop<loaded, divided, rounded, bounded, stored_as<Form>>>(l);
}

// Softmax and its logarithm of 16-bit floats, whose differences, exponentials and quotients are rounded.
template <block_form Form> row_run find_softmax_of(const level_steps& l) {
  using in = loaded_as<Form>;
  using out = stored_as<Form>;
  using rounded = rounded_to<Form>;
  using centered = computed_by<op::sub>;
  using sum = folded<op::reduce_sum>;
  return find_among<row_loop<in, held, reloaded, centered, rounded, computed<op::exp>, rounded, stored, sum>,
                    row_loop<in, held, reloaded, centered, rounded, stored, computed<op::exp>, rounded, sum>,
                    row_loop<loaded, divided, rounded, out>, row_loop<loaded, centered, rounded, out>>(l);
}

// A reduction of parameters, or of values that are computed first and kept for later levels.
template <class Fold> row_run find_folding(const level_steps& l) {
  return find_among<row_loop<loaded, Fold>, row_loop<loaded, computed_by<op::mul>, stored, Fold>,
                    row_loop<loaded, computed<op::add>, stored, Fold>,
                    row_loop<loaded, computed<op::add>, computed<op::add>, stored, Fold>>(l);
}

// A reduction of 16-bit floats, which are put aside as floats.
template <block_form Form> row_run find_folding_of(const level_steps& l) {
  using in = loaded_as<Form>;
  return find_among<
      row_loop<in, held, reloaded, folded<op::reduce_max>>, row_loop<in, held, reloaded, folded<op::reduce_min>>,
      row_loop<in, held, reloaded, folded<op::reduce_sum>>, row_loop<in, held, reloaded, folded<op::reduce_mean>>>(l);
}

}  // namespace

row_run find_row_loop(const block_step* program, const block_advance* moves, std::size_t count) {
  const level_steps l{program, moves, count};
  for (const auto find : {find_affine<stored>,
                          find_affine<streamed>,
                          find_activation<stored>,
                          find_activation<streamed>,
                          find_arithmetic<stored>,
                          find_arithmetic<streamed>,
                          find_storing<stored>,
                          find_storing<streamed>,
                          find_rotation<stored>,
                          find_rotation<streamed>,
                          find_rotation_of<block_form::f16>,
                          find_rotation_of<block_form::bf16>,
                          find_folding_of<block_form::f16>,
                          find_folding_of<block_form::bf16>,
                          find_softmax_of<block_form::f16>,
                          find_softmax_of<block_form::bf16>,
                          find_folding<folded<op::reduce_max>>,
                          find_folding<folded<op::reduce_sum>>,
                          find_folding<folded<op::reduce_mean>>,
                          find_quantizing<block_form::u8>,
                          find_quantizing<block_form::i8>})
    if (const row_run f = find(l)) return f;
  using centered = computed_by<op::sub>;
  return find_among<
      row_loop<loaded, folded<op::reduce_min>>, row_loop<loaded, folded<op::reduce_l1>>,
      row_loop<loaded, folded<op::reduce_l2>>, row_loop<loaded, folded<op::reduce_sum_square>>,
      row_loop<loaded, computed_by<op::mul>, computed<op::add>, stored, folded<op::reduce_max>>,
      row_loop<loaded, divided, computed<op::add>, stored, folded<op::reduce_max>>,
      row_loop<loaded, centered, computed<op::exp>, stored, folded<op::reduce_sum>>,
      row_loop<loaded, centered, stored, computed<op::exp>, folded<op::reduce_sum>>,
      row_loop<loaded, computed<op::mul>, folded<op::reduce_mean>>,
      row_loop<loaded, computed<op::mul>, folded<op::reduce_sum>>,
      row_loop<loaded, computed<op::mul>, folded<op::reduce_mean>, loaded, computed<op::mul>, folded<op::reduce_mean>>,
      row_loop<loaded, centered, stored, computed<op::mul>, folded<op::reduce_mean>>>(l);
}

}  // namespace kiln::eigen
