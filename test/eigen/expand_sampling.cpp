#include "eigen/expanded.hpp"

namespace kiln::testing {
namespace {

TEST(expand_sampling, grid_sample_is_gathers) {
  using op::sampling_mode, op::sampling_padding;
  for (const sampling_mode mode : {sampling_mode::nearest, sampling_mode::linear, sampling_mode::cubic})
    for (const sampling_padding padding :
         {sampling_padding::zeros, sampling_padding::border, sampling_padding::reflection})
      for (const bool corners : {false, true})
        for (const bool normalized : {true, false}) {
          const auto make = [&](builder& b) {
            const value x = b.input("x", dtype::f32, {2, 3, 5, 1});
            b.output(b.add(op::grid_sample{mode, padding, corners, normalized}, x,
                           b.input("grid", dtype::f32, {2, 4, 6, 2})));
          };
          std::vector<argument> in = random_inputs(make, 5);
          in[1] = random_argument({dtype::f32, {2, 4, 6, 2}}, 9, -2.5, normalized ? 2.5 : 9);
          expect_expanded(make, in, {1e-5, 1e-5});
          if (::testing::Test::HasFailure()) return;
        }
}
// Positions have the precision of the op's own computation, whatever the operands' dtype.
TEST(expand_sampling, places_of_16_bits_are_exact) {
  for (const dtype type : {dtype::f16, dtype::bf16})
    for (const op::sampling_mode mode : {op::sampling_mode::nearest, op::sampling_mode::linear}) {
      const auto make = [&](builder& b) {
        const value x = b.input("x", type, {1, 2, 4999});
        b.output(
            b.add(op::grid_sample{mode, op::sampling_padding::border, true}, x, b.input("grid", type, {1, 50, 1})));
      };
      const double apart = type == dtype::f16 ? 1e-3 : 8e-3;
      expect_expanded(make, random_inputs(make, 5), {apart, apart});
    }
}
// The last place of an extent that f32 rounds up to the extent.
TEST(expand_sampling, places_stay_in_long_extents) {
  constexpr std::int64_t n = (std::int64_t{1} << 24) + 4;
  const auto make = [&](builder& b) {
    const value x = b.input("x", dtype::f32, {1, 1, n});
    b.output(b.add(op::grid_sample{op::sampling_mode::nearest, op::sampling_padding::border, true, false}, x,
                   b.input("grid", dtype::f32, {1, 3, 1})));
  };
  argument x(shape{dtype::f32, {1, 1, n}});
  std::fill_n(x.as<float>().data(), n, 1.0f);
  x.as<float>()[static_cast<std::size_t>(n - 1)] = 7;
  const argument in[] = {x, argument(literal::of<float>({dtype::f32, {1, 3, 1}}, std::vector<float>{0, 1e9, 5}))};
  expect_expanded(make, in, {0, 0});
}

}  // namespace
}  // namespace kiln::testing
