#include "pass/rotary_row.hpp"
#include "static_program/equal.hpp"

namespace kiln::test {
namespace {

constexpr auto perceptron = [](auto& b) {
  auto x = b.input("x", dtype::f32, {3, 20});
  x = (x.dot(b.weight("w1", dtype::f32, {20, 33})) + b.weight("b1", dtype::f32, {33})).relu();
  x = (x.dot(b.weight("w2", dtype::f32, {33, 7})) + b.weight("b2", dtype::f32, {7})).tanh();
  b.output(x);
};
TEST(static_dense, perceptron) { expect_equal<perceptron>(1); }

constexpr auto one_row = [](auto& b) {
  auto x = b.input("x", dtype::f32, {1, 50});
  x = (x.dot(b.weight("w1", dtype::f32, {21, 50}).transpose({1, 0})) + b.weight("b1", dtype::f32, {21})).relu();
  b.output(x.dot(b.weight("w2", dtype::f32, {21, 40})));
};
TEST(static_dense, one_row_with_weights_either_way) { expect_equal<one_row>(2); }

constexpr auto turned = [](auto& b) {
  auto x = b.input("x", dtype::f32, {9, 5}), y = b.input("y", dtype::f32, {6, 5});
  b.output(x.transpose({1, 0}).dot(b.weight("w", dtype::f32, {9, 17})));
  b.output(x.dot(y.transpose({1, 0})));
  b.output(x.dot(b.weight("v", dtype::f32, {5, 1})).exp());
};
TEST(static_dense, transposed_operands_and_a_matrix_times_a_vector) { expect_equal<turned>(3); }

constexpr auto batched = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 3, 4, 8}), y = b.input("y", dtype::f32, {3, 8, 10});
  b.output(x.dot(y).sigmoid() * b.input("z", dtype::f32, {2, 3, 4, 10}));
};
TEST(static_dense, batched_product_with_broadcast_operand_and_product_behind) { expect_equal<batched>(4); }

constexpr auto probabilities = [](auto& b) {
  auto x = b.input("x", dtype::f32, {5, 37});
  b.output(x.softmax());
  b.output(x.log_softmax(0));
};
TEST(static_dense, softmax_over_either_axis) { expect_equal<probabilities>(5); }

constexpr auto norms = [](auto& b) {
  auto x = b.input("x", dtype::f32, {4, 70});
  auto y = x.normalize({-1}) * b.weight("scale", dtype::f32, {70}) + b.weight("bias", dtype::f32, {70});
  b.output(y + x);
  b.output(y.rms_normalize());
};
TEST(static_dense, layer_norm_with_residual_then_rms_norm) { expect_equal<norms>(6); }

constexpr auto rotary = [](auto& b) { test::rms_norm_and_rotary(b); };
TEST(static_dense, rms_norm_and_rotary_embedding) { expect_equal<rotary>(6); }
static_assert(static_program<rotary>::kernels == 1);

constexpr auto rotate_half = [](auto& b) { test::rms_norm_and_rotate_half(b, dtype::f32, 12); };
TEST(static_dense, rms_norm_and_rotary_embedding_in_another_spelling) { expect_equal<rotate_half>(6); }
static_assert(static_program<rotate_half>::kernels == 1);

constexpr auto folds = [](auto& b) {
  auto x = b.input("x", dtype::f32, {2, 3, 5, 7});
  b.output((x * 2.0).reduce_sum({1}).sqrt() + 1.0);
  b.output(x.reduce_max({0, 2}));
  b.output(x.reduce_mean({1, 3}).squeeze({1, 3}));
  b.output(x.exp().reduce_prod({3}));
};
TEST(static_dense, reductions_over_any_axes) { expect_equal<folds>(7); }

constexpr auto doubles = [](auto& b) {
  auto x = b.input("x", dtype::f64, {3, 11});
  b.output(x.dot(b.weight("w", dtype::f64, {11, 6})).softmax());
  auto k = b.input("k", dtype::i32, {3, 4});
  b.output(k.dot(b.input("l", dtype::i32, {4, 5})) + b.scalar(dtype::i32, 3));
  b.output((k.convert(dtype::f32) * 0.5).exp());
  b.output(k < b.scalar(dtype::i32, 1));
};
TEST(static_dense, doubles_integers_and_conditions) { expect_equal<doubles>(8); }

constexpr auto conditions = [](auto& b) {
  auto x = b.input("x", dtype::f32, {6, 9}), y = b.input("y", dtype::f32, {6, 9});
  b.output((x < y).where(x.exp(), y.gelu()));
  b.output((x < y).where(x, y).softmax());
};
TEST(static_dense, conditions_stay_in_registers) { expect_equal<conditions>(9); }

}  // namespace
}  // namespace kiln::test
