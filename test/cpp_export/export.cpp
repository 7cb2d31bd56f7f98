#include "cpp_export/exported.hpp"

namespace kiln::test {
namespace {

// A program without a static twin, exported and compared with each op's own reference computation.
void expect_as_reference(const program& p, std::uint64_t seed, double tolerance = 4e-6) {
  const auto values = random_inputs(p, seed);
  const auto expected = evaluate(p, values);
  expect_exported(p, {values.data(), values.size()}, {expected.data(), expected.size()}, tolerance);
}

TEST(exported, integers_wrap_conditions_select_and_floats_are_clamped) {
  builder b;
  auto i = b.input("i", dtype::i32, {3, 5}), j = b.input("j", dtype::i32, {3, 5});
  auto x = b.input("x", dtype::f32, {3, 5});
  b.output(i * j + i * 1000000000.0);
  b.output((x * 100.0).convert(dtype::u8));
  b.output((x * 1e12).convert(dtype::i32));
  b.output(i.convert(dtype::f32) * x);
  b.output((i > j).where(i, j));
  expect_as_reference(b.finish(), 1);
}

TEST(exported, sums_over_rows_columns_and_everything) {
  builder b;
  auto x = b.input("x", dtype::f32, {3, 4, 37});
  b.output((x * x).reduce_sum({2}).sqrt());
  b.output(x.reduce_max({1}));
  b.output(x.transpose({2, 0, 1}).reduce_mean({0, 2}));
  b.output(x.reduce_sum({0, 1, 2}));
  b.output(x.softmax(1));
  b.output(b.input("n", dtype::i64, {2, 9}).reduce_max({1}));
  expect_as_reference(b.finish(), 2);
}

TEST(exported, elementary_functions) {
  builder b;
  auto x = b.input("x", dtype::f32, {70});
  b.output((x * 30.0).exp());
  b.output(x.sigmoid() * x.tanh());
  b.output(x.erf() + x.sin() * x.cos());
  b.output((x * x + 0.1).log());
  auto y = b.input("y", dtype::f64, {9});
  b.output(y.exp() + (y * y).sqrt());
  expect_as_reference(b.finish(), 3);
}

TEST(exported, products_of_many_columns_overlap_their_last_panel) {
  builder b;
  auto x = b.input("x", dtype::f32, {5, 19});
  b.output(x.dot(b.weight("w", dtype::f32, {19, 150})).relu());
  b.output(x.dot(b.input("y", dtype::f32, {19, 130})));
  auto image = b.input("image", dtype::f32, {1, 2, 9, 70});
  b.output(image.conv(b.weight("k", dtype::f32, {3, 2, 3, 3}), {.pads = {1, 1, 1, 1}}));
  auto tall = b.input("tall", dtype::f32, {1, 2, 13, 13});
  b.output(tall.conv(b.weight("l", dtype::f32, {4, 2, 3, 3}), {.pads = {1, 1, 1, 1}}));
  expect_as_reference(b.finish(), 4, 1e-5);
}

TEST(exported, products_that_end_as_another_type) {
  builder b;
  auto x = b.input("x", dtype::f32, {5, 19}), y = b.input("y", dtype::f32, {19, 150});
  b.output(x.dot(y) > b.input("z", dtype::f32, {5, 150}));
  auto i = b.input("i", dtype::i32, {4, 9});
  b.output(i.dot(b.input("j", dtype::i32, {9, 70})).convert(dtype::f32) * 0.5);
  auto column = b.input("k", dtype::f32, {19, 1});
  b.output((x.dot(column) * 10.0).convert(dtype::i8));
  expect_as_reference(b.finish(), 6, 1e-5);
}

TEST(exported, names_that_are_no_identifiers_or_meet) {
  builder b;
  auto x = b.input("a.b", dtype::f32, {3}), y = b.input("a/b", dtype::f32, {3}), z = b.input("0", dtype::f32, {3});
  b.output(x + y, "for");
  b.output(z * 2.0, "run");
  for (const char* name : {"template", "arena", "weights", "network", "argv", "main", "step_0", "select", "fadd",
                           "M_PI", "ports", "exported_weights"})
    b.output(b.input(name, dtype::f32, {2}) * 3.0, std::string("transfer_") + name);
  expect_as_reference(b.finish(), 5);
}

}  // namespace
}  // namespace kiln::test
