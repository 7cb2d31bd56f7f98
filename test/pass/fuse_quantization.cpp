#include "kiln/pass/fuse_quantization.hpp"

#include "kiln/pass/fuse_contraction.hpp"
#include "kiln/pass/fuse_pointwise.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

value to_bytes(builder& b, value x, float scale, float zero) {
  const value y = (x / scale | op::round{}) + zero;
  return b.add(op::clip{}, y, b.scalar(dtype::f32, 0.F), b.scalar(dtype::f32, 255.F)).convert(dtype::u8);
}
value weights(builder& b, std::int64_t filters) {
  std::vector<float> w;
  for (std::int64_t i = 0; i < filters * 18; ++i) w.push_back(static_cast<float>(i * 37 % 200 - 100));
  return b.constant<float>(dtype::i8, {filters, 2, 3, 3}, w);
}
value convolved(builder& b, value bytes, std::int64_t filters = 3) {
  return b.add(op::integer_convolution{.pads = {1, 1, 1, 1}, .outside = 7}, bytes, weights(b, filters));
}
value image(builder& b) { return b.input("x", dtype::f32, {1, 2, 4, 5}); }

// How many kernels the program is, fused, and whether its results stay.
template <class Build> void expect_kernels(Build build, std::uint32_t count) {
  program p = built<builder>(build);
  fuse_contraction(p);
  fuse_pointwise(p);
  fuse_quantization(p);
  verify(p);
  EXPECT_EQ(kernel_count(p), count) << print(p).view();
  EXPECT_TRUE(same_results(built<builder>(build), p, 0)) << print(p).view();
}

TEST(fuse_quantization, convolutions_quantize_what_they_read) {
  expect_kernels([](builder& b) { b.output(convolved(b, to_bytes(b, image(b), .05F, 7))); }, 1);
  expect_kernels([](builder& b) { b.output(convolved(b, to_bytes(b, image(b).relu(), .05F, 0))); }, 1);
  expect_kernels(
      [](builder& b) {
        const value x = b.add(op::clip{}, image(b), b.scalar(dtype::f32, -.5F), b.scalar(dtype::f32, .5F));
        b.output(convolved(b, to_bytes(b, x, .05F, 7)).convert(dtype::f32) * .01F + 1.F);
      },
      1);
}

TEST(fuse_quantization, bytes_that_others_read_and_other_forms_stay) {
  expect_kernels(
      [](builder& b) {
        const value q = to_bytes(b, image(b), .05F, 7);
        b.output(convolved(b, q));
        b.output(convolved(b, q, 4));
      },
      3);
  expect_kernels([](builder& b) { b.output(convolved(b, to_bytes(b, image(b) * 2.F, .05F, 7))); }, 2);
  expect_kernels([](builder& b) { b.output(convolved(b, to_bytes(b, image(b), .05F, .5F))); }, 2);
  expect_kernels(
      [](builder& b) {
        const value q = to_bytes(b, image(b), .05F, 7);
        b.output(convolved(b, q, 2) + q.convert(dtype::i32));  // the epilogue reads the bytes again
      },
      2);
}

}  // namespace
}  // namespace kiln::test
