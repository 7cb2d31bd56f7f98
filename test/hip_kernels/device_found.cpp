// What a device counts, transforms and recurs over, beside the ops' own computations, where there is a device.
#include "hip_kernels/on_device.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "kiln/op/linear/dft.hpp"
#include "kiln/op/more.hpp"

namespace kiln::testing {
namespace {

class found_on_device : public tile_kernels_on_device {};

TEST_P(found_on_device, elements_and_slices) {
  const dtype t = GetParam();
  check([&](builder& b) {
    const value some = b.input("x", t, {5, 33, 7}).relu();
    b.output(b.add(op::nonzero{dimension::symbol("elements")}, some));
    b.output(b.add(op::nonzero{dimension::symbol("ones")}, b.input("one", t, {})));
    // slices of an odd count of elements, by a condition that is shorter than the axis
    const value holds = b.input("holds", dtype::boolean, {30});
    b.output(b.add(op::compress{.along = 1, .count = dimension::symbol("slices")}, some, holds));
    b.output(b.add(op::compress{.flat = true, .count = dimension::symbol("few")}, some, holds));
  });
}

TEST_P(found_on_device, boxes) {
  if (GetParam() != dtype::f32) GTEST_SKIP() << "boxes are f32";
  const auto one = [](dtype t, double x) { return literal::of<double>({t, {1}}, std::span<const double>(&x, 1)); };
  for (const bool centered : {false, true})
    for (const bool least : {false, true})
      check([&](builder& b) {
        b.output(b.add(op::non_max_suppression{centered, least, dimension::symbol("boxes")},
                       b.input("corners", dtype::f32, {2, 300, 4}), b.input("scores", dtype::f32, {2, 3, 300}),
                       b.constant(one(dtype::i64, 20)), b.constant(one(dtype::f32, 0.25)),
                       b.constant(one(dtype::f32, -0.5))));
      });
}

// Lengths of small factors, and a prime.
TEST_P(found_on_device, spectra) {
  if (GetParam() != dtype::f32) GTEST_SKIP() << "signals of f32";
  const dtype t = dtype::f32;
  for (const std::int64_t n : {60, 100, 4099})
    check([&](builder& b) {
      const value small = b.scalar(t, 1.0f / 16);
      const value real = b.input("real", t, {3, n, 1}) * small, both = b.input("both", t, {2, n, 2}) * small;
      b.output(b.add(op::dft{.axis = 1}, real));
      b.output(b.add(op::dft{.axis = 1, .one_sided = true}, real));
      b.output(b.add(op::dft{.axis = 1}, both));
      b.output(b.add(op::dft{.axis = 1, .inverse = true}, both));
    });
}

TEST_P(found_on_device, linear_attention) {
  const dtype t = GetParam();
  check([&](builder& b) {
    const value quarter = b.scalar(t, 0.25f);
    const value q = b.input("q", t, {2, 9, 3, 16}), k = b.input("k", t, {2, 9, 3, 16}) * quarter,
                v = b.input("v", t, {2, 9, 3, 24}), state = b.input("state", t, {2, 3, 16, 24}),
                decay = b.input("decay", t, {2, 9, 3, 16}) * quarter, beta = b.input("beta", t, {2, 9, 3});
    for (const bool corrects : {false, true}) {
      const value y = b.add(op::linear_attention{.scale = 0.25f, .corrects = corrects}, q, k, v, state, decay, beta);
      b.output(y), b.output(y.result(1));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(dtypes, found_on_device, ::testing::Values(dtype::f16, dtype::bf16, dtype::f32),
                         [](const auto& at) { return std::string(to_string(at.param)); });

}  // namespace
}  // namespace kiln::testing
