#include <gtest/gtest.h>

#include <algorithm>

#include "kiln/onnx/import.hpp"
#include "runtime/compare.hpp"

// How many kernels a run launches, as the plan has it: fused bodies, copies and fallbacks all count.
namespace kiln {
namespace {

const std::string models = std::string(KILN_SOURCE_DIR) + "/examples/models/";

std::size_t launches(const executable& e) { return e.report().steps.size(); }
std::size_t fallbacks(const executable& e) {
  return static_cast<std::size_t>(std::ranges::count_if(e.report().steps, &step_info::fallback));
}

TEST(kernel_counts, digits_takes_at_most_eight) {
  const executable e = compile(onnx::read_model(models + "digits/model.onnx").graph, eigen_target());
  EXPECT_LE(launches(e), 8u);
  EXPECT_EQ(fallbacks(e), 0u);
}

TEST(kernel_counts, a_scripture_step_takes_at_most_110) {
  const executable e = compile(onnx::read_model(models + "scripture/model.onnx").graph, eigen_target());
  EXPECT_LE(launches(e), 110u);
}

void expect_one_kernel(const std::function<void(builder&)>& make) {
  const executable e = testing::compile_eigen(make);
  EXPECT_EQ(launches(e), 1u);
  EXPECT_EQ(fallbacks(e), 0u);
  testing::expect_same(make);
}

TEST(kernel_counts, softmax_is_one_kernel) {
  expect_one_kernel([](builder& b) { b.output(b.input("x", dtype::f32, {3, 40, 50}).softmax()); });
  expect_one_kernel([](builder& b) { b.output(b.input("x", dtype::f32, {2, 21, 17, 19}).softmax(1)); });
  expect_one_kernel([](builder& b) { b.output(b.input("x", dtype::f32, {300, 3}).softmax(0)); });
  expect_one_kernel([](builder& b) {
    b.output(b.input("x", dtype::f32, {5, 60, 40}).transpose({0, 2, 1}).softmax(2));
  });
}

// As exporters spell them: x * rsqrt(mean(x^2) + e) * scale, and (x - mean) / sqrt(mean((x - mean)^2) + e) * scale +
// bias.
TEST(kernel_counts, norms_are_one_kernel) {
  expect_one_kernel([](builder& b) {
    const auto x = b.input("x", dtype::f32, {4, 7, 64});
    b.output(x * ((x * x).reduce_mean({-1}) + 1e-5f).rsqrt() * b.input("scale", dtype::f32, {64}));
  });
  expect_one_kernel([](builder& b) {
    const auto x = b.input("x", dtype::f32, {4, 7, 64});
    const auto centered = x - x.reduce_mean({-1});
    b.output(centered / ((centered * centered).reduce_mean({-1}) + 1e-5f).sqrt() * b.input("scale", dtype::f32, {64}) +
             b.input("bias", dtype::f32, {64}));
  });
  expect_one_kernel([](builder& b) {  // over the channels of an image
    const auto x = b.input("x", dtype::f32, {2, 24, 9, 7}), centered = x - x.reduce_mean({1});
    b.output(centered / ((centered * centered).reduce_mean({1}) + 1e-5f).sqrt());
  });
}

TEST(kernel_counts, attention_is_one_kernel) {
  expect_one_kernel([](builder& b) {
    const auto q = b.input("q", dtype::f32, {2, 3, 17, 32}), k = b.input("k", dtype::f32, {2, 3, 19, 32}),
               v = b.input("v", dtype::f32, {2, 3, 19, 32}), mask = b.input("mask", dtype::f32, {2, 1, 17, 19});
    b.output((q.dot(k.transpose({0, 1, 3, 2})) * 0.17677669f + mask).softmax().dot(v));
  });
}

}  // namespace
}  // namespace kiln
