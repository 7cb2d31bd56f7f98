#include "kiln/quantize/precision.hpp"

#include <gmock/gmock.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/quantize/accuracy.hpp"
#include "pass/evaluate.hpp"

namespace kiln::quantize {
namespace {

using ::testing::HasSubstr;

// A normalization whose squares are beyond what f16 holds, all of one node.
program squares() {
  builder b;
  const value x = b.input("x", dtype::f32, {2, 4});
  b.label = text("norm");
  const value mean = (x * x).reduce_mean({-1}).broadcast_to({2, 4});
  const value y = x / mean.sqrt();
  b.label = text("scaled");
  b.output(y * 3.0f, "y");
  return b.finish();
}

const argument large = argument::of<float>({2, 4}, std::vector<float>{1000, -2000, 300, 4000, 1, 2, -3, 4});

calibration_data once() {
  return [given = false]() mutable -> std::optional<sample> {
    if (std::exchange(given, true)) return std::nullopt;
    return sample{{"x", large}};
  };
}

std::vector<float> run(const program& p) {
  const argument in[] = {large};
  const auto out = compile(p, eigen_target()).run(in)[0].to_literal().to<float>();
  return {out.begin(), out.end()};
}

TEST(precision, halves_read_no_value_beyond_their_range) {
  const program p = prepared(squares());
  precision_options how{.to = precision::f16, .is_prepared = true};
  const auto exact = run(p), lost = run(with_precision(p, how).graph);
  how.known = calibrate(p, float_values(p), eigen_target(), once());
  const quantized_program made = with_precision(p, how);
  const auto near = run(made.graph);
  for (std::size_t k = 0; k < exact.size(); ++k) EXPECT_NEAR(near[k], exact[k], 5e-3 * std::abs(exact[k]) + 1e-3) << k;
  EXPECT_GT(std::abs(lost[0] - exact[0]), 0.1);  // without ranges the squares become infinite
  ASSERT_GE(made.note.remarks.size(), 1u);
  EXPECT_THAT(made.note.remarks[0].str(), HasSubstr("'norm#0' stays in f32"));
  EXPECT_GE(made.note.counts.total(), 1u);  // the rest does not
}

TEST(precision, an_input_beyond_the_range_is_read_in_f32) {
  builder b;
  b.output(b.input("x", dtype::f32, {2, 4}) * 0.001f, "y");
  const program p = b.finish();
  const argument in[] = {argument::of<float>({2, 4}, std::vector<float>(8, 100000))};
  const auto value_of = [&](const ranges& known) {
    const auto made = with_precision(p, {.to = precision::f16, .known = known});
    return compile(made.graph, eigen_target()).run(in)[0].to_literal().to<float>()[0];
  };
  EXPECT_TRUE(std::isinf(value_of({})));
  EXPECT_FLOAT_EQ(value_of({{"x", {.whole = {0, 100000}}}}), 100);
}

TEST(precision, a_prepared_program_is_not_prepared_again) {
  builder b;
  b.output(b.input("x", dtype::f32, {2, 4}).neg().neg(), "y");
  const program p = b.finish();
  const auto negations = [&](bool is_prepared) {
    const program made = with_precision(p, {.to = precision::bf16, .is_prepared = is_prepared}).graph;
    std::size_t n = 0;
    for (std::uint32_t i = 0; i < made.main().size(); ++i)
      n += made.main()[i].kind == instruction_kind::op && made.main()[i].op.is<op::neg>();
    return n;
  };
  EXPECT_EQ(negations(true), 2u);
  EXPECT_EQ(negations(false), 0u);
}

// Needs no ranges: each run has its own.
TEST(precision, dynamic_integers_follow_the_run) {
  builder b;
  test::dice d{3};
  const auto weights = [&](const dims& lens) { return b.constant(test::random_literal({dtype::f32, lens}, d)); };
  const value x = b.input("x", dtype::f32, {dimension::symbol("n", 1, 100), 16});
  b.label = text("first");
  const value y = x.dot(weights({16, 32})).relu();
  b.label = text("second");
  b.output(y.dot(weights({32, 8})), "y");
  const program p = b.finish();
  const quantized_program made = with_precision(p, {.to = precision::dynamic_int8});
  const executable exact = compile(p, eigen_target()), exe = compile(made.graph, eigen_target());
  std::size_t products = 0;
  for (const step_info& s : exe.report().steps) products += s.kernel.find("integer dot") != std::string::npos;
  EXPECT_EQ(products, 2u);
  for (const double size : {1e-3, 1.0, 1e4}) {
    test::dice values{5};
    small_vector<double> numbers;
    for (int k = 0; k < 5 * 16; ++k) numbers.push_back(size * values.real());
    const argument in[] = {argument(literal::of<double>({dtype::f32, {5, 16}}, numbers))};
    const auto a = exact.run(in)[0].to_literal().to<double>(), c = exe.run(in)[0].to_literal().to<double>();
    double most = 0;
    for (const double v : a) most = std::max(most, std::abs(v));
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], c[k], .02 * most) << size;
  }
  precision_options one{.to = precision::dynamic_int8};
  one.int8.exclude = {"first"};
  EXPECT_EQ(with_precision(p, one).note.counts.total(), 2u);
  one.int8.exclude = {"first", "second"};
  EXPECT_THROW(with_precision(p, one), error);
}

// A node that became a dot and an addition: each is compared with its own.
TEST(precision, dynamic_products_keep_the_names_of_values) {
  builder b;
  test::dice d{3};
  const value x = b.input("x", dtype::f32, {2, 4});
  b.label = text("gemm");
  b.output(x.dot(b.constant(test::random_literal({dtype::f32, {4, 4}}, d))) + x, "y");
  const program p = prepared(b.finish()),
                q = with_precision(p, {.to = precision::dynamic_int8, .is_prepared = true}).graph;
  const auto report = compare_accuracy({p, q, float_values(p), float_values(q)}, eigen_target(), once());
  bool found = false;
  for (const tensor_accuracy& t : report.tensors) {
    EXPECT_GT(t.sqnr, 20) << t.name;
    found = found || t.name == "gemm#0";
  }
  EXPECT_TRUE(found);
}

TEST(precision, convolutions_need_ranges) {
  builder b;
  b.label = text("conv");
  const value x = b.input("x", dtype::f32, {1, 1, 3, 3});
  const auto ones = [&](const dims& lens) {
    return b.constant(literal::of<float>({dtype::f32, lens}, std::vector<float>(9, .5F)));
  };
  const value y = x.conv(ones({1, 1, 3, 3}));
  b.label = text("dot");
  b.output(y.reshape({1, 1}).broadcast_to({1, 9}).dot(ones({9, 1})));
  const quantized_program made = with_precision(b.finish(), {.to = precision::dynamic_int8});
  ASSERT_EQ(made.note.remarks.size(), 1u);
  EXPECT_THAT(made.note.remarks[0].str(), HasSubstr("'conv' stays in floats"));
}

TEST(precision, names_go_round) {
  for (const precision p : precisions) EXPECT_EQ(precision_named(to_string(p)), p);
  for (const calibration_method m : calibration_methods) EXPECT_EQ(method_named(to_string(m)), m);
  try {
    method_named("median");
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("calibration method: expected one of min_max, entropy, percentile, distribution, "
                                    "found 'median'"));
  }
}

}  // namespace
}  // namespace kiln::quantize
