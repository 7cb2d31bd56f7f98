#include <random>

#include "kiln/interface/migraphx/impl/operators/lowering.hpp"
#include "kiln/op/random/random_uniform.hpp"

// Random numbers.
namespace kiln::migraphx {

namespace {

// Numbers in [0, 1) in the memory of the second operand, from a seed that is a constant.
value_list add_random_uniform(lowering& c) {
  c.expect(2);
  op::random_uniform op;
  op.lens = c.in(1).get_shape().lens;
  op.seed = static_cast<std::uint32_t>(c.numbers(0)[0]);
  op.type = c.in(1).type();
  return {c.build.add(op, value_list{})};
}
// A number that nobody knows beforehand; the program keeps it.
value_list add_random_seed(lowering& c) {
  c.expect(0);
  const std::int64_t seed = std::random_device()() >> 1;
  return {c.build.constant(literal::of<std::int64_t>({c.type("dtype"), {1}}, std::span(&seed, 1)))};
}
// For each random number in [0, 1) the class in whose part of the cumulative distribution it falls.
value_list add_multinomial(lowering& c) {
  c.expect(2);
  const value sums = c.in(0), random = c.in(1);
  if (sums.rank() != 2 || random.rank() != 2)
    raise(fault::of(errc::shape_mismatch, "rank of a distribution and of its samples", 2, sums.get_shape().lens));
  const dimension classes = sums.dim(1);
  const value whole = sums.slice({{1}, {classes - 1}, {classes}, {}});
  const value at = (random.convert(sums.type()) * whole).unsqueeze({2});
  const value passed = c.build.add(op::less_or_equal{}, sums.unsqueeze({1}), at);
  return {passed.convert(dtype::i32).reduce_sum({2}).squeeze({2}).convert(c.type("dtype"))};
}

}  // namespace

operator_table sample_operators() {
  static constexpr operator_row table[] = {
      {"multinomial", "dtype: int32_type, seed: 0", add_multinomial},
      {"random_seed", "dtype: uint64_type", add_random_seed},
      {"random_uniform", "", add_random_uniform},
  };
  return table;
}

}  // namespace kiln::migraphx
