#include "kiln/quantize/fp8.hpp"

#include <gmock/gmock.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/onnx/export.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/quantize/precision.hpp"
#include "pass/evaluate.hpp"
#include "quantize/message_of.hpp"
#include "quantize/results.hpp"

namespace kiln::quantize {
namespace {

using test::count_of;
using test::first_result;
using test::message_of;
using test::sqnr;
using ::testing::HasSubstr;

program network() {
  builder b;
  test::dice d{3};
  const auto weights = [&](const dims& lens) { return b.constant(test::random_literal({dtype::f32, lens}, d)); };
  const value x = b.input("x", dtype::f32, {2, 3, 6, 6});
  b.label = text("first");
  const value y = x.conv(weights({4, 3, 3, 3}));
  b.label = text("second");
  b.output(y.relu().reshape({2, 64}).dot(weights({64, 80})), "y");
  return prepared(b.finish());
}

argument scaled_input(double size) {
  test::dice d{7};
  small_vector<double> numbers;
  for (int k = 0; k < 2 * 3 * 6 * 6; ++k) numbers.push_back(size * d.real());
  return argument(literal::of<double>({dtype::f32, {2, 3, 6, 6}}, numbers));
}
calibration_data once(double size = 1) {
  return [given = false, size]() mutable -> std::optional<sample> {
    if (std::exchange(given, true)) return std::nullopt;
    return sample{{"x", scaled_input(size)}};
  };
}
// A number that is rounded to three bits of mantissa keeps about 31 dB, to two 25; here four of them follow one
// another.
TEST(fp8, every_type_is_as_near_as_its_mantissa) {
  const program p = network();
  const ranges known = calibrate(p, values_to_quantize(p, fp8_options{}), eigen_target(), once());
  const auto exact = first_result(p, scaled_input(1), eigen_target());
  for (const dtype t : float8_types) {
    const bool fine = t == dtype::f8e4m3fn || t == dtype::f8e4m3fnuz;
    for (const bool per_channel : {true, false}) {
      const quantized_program made = to_fp8(p, known, {.type = t, .per_channel = per_channel});
      EXPECT_EQ(count_of(made.graph, "quantize_linear"), 2u);
      EXPECT_EQ(count_of(made.graph, "dequantize_linear"), 4u);
      const auto near = first_result(made.graph, scaled_input(1), eigen_target());
      EXPECT_GT(sqnr(exact, near), fine ? 24 : 18) << to_string(t);
      EXPECT_LT(sqnr(exact, near), fine ? 40 : 34) << to_string(t);  // it is rounded at all
      const auto reference = first_result(made.graph, scaled_input(1), reference_target());
      for (std::size_t k = 0; k < near.size(); ++k)
        EXPECT_NEAR(near[k], reference[k], 1e-3 * std::abs(reference[k]) + 1e-3);
    }
  }
}

TEST(fp8, values_beyond_the_range_saturate) {
  const program p = network();
  const ranges known = calibrate(p, values_to_quantize(p, fp8_options{}), eigen_target(), once(1e-3));
  for (const dtype t : float8_types)
    for (const float y : first_result(to_fp8(p, known, {.type = t}).graph, scaled_input(1e6), eigen_target()))
      EXPECT_TRUE(std::isfinite(y)) << to_string(t);
}

// The greatest magnitude gets the type's greatest value, as MIGraphX has it.
TEST(fp8, scales_are_of_the_greatest_magnitude) {
  const program p = network();
  const auto scale_in = [&](dtype t) {
    const program q = to_fp8(p, {{"x", {.whole = {-3, 2}}}}, {.type = t}).graph;
    for (const std::uint32_t i : q.main().order())
      if (q.main()[i].kind == instruction_kind::op && q.main()[i].op.is<op::quantize_linear>())
        return q.main().producer(q.main()[i].inputs[1]).constant.to<float>()[0];
    return 0.0F;
  };
  EXPECT_EQ(scale_in(dtype::f8e4m3fn), 3.0F / 448);
  EXPECT_EQ(scale_in(dtype::f8e4m3fnuz), 3.0F / 240);
  EXPECT_EQ(scale_in(dtype::f8e5m2), 3.0F / 57344);
}

TEST(fp8, a_distribution_gives_its_deviation) {
  const program p = network();
  const ranges known{{"x", {.whole = {-9, 9}, .distribution = moments{0, 2}}}};
  const program q = to_fp8(p, known).graph;
  for (const std::uint32_t i : q.main().order())
    if (q.main()[i].kind == instruction_kind::op && q.main()[i].op.is<op::quantize_linear>()) {
      EXPECT_FLOAT_EQ(q.main().producer(q.main()[i].inputs[1]).constant.to<float>()[0],
                      static_cast<float>(2 / deviation_of(dtype::f8e4m3fn)));
    }
}

TEST(fp8, weights_of_a_matrix_stay_in_bytes) {
  const program p = network();
  const ranges known = calibrate(p, values_to_quantize(p, fp8_options{}), eigen_target(), once());
  const executable exe = compile(to_fp8(p, known).graph, eigen_target());
  std::size_t found = 0;
  for (const step_info& s : exe.report().steps) {
    EXPECT_FALSE(s.fallback) << s.kernel;
    found += s.kernel.find("8-bit float blocks") != std::string::npos;
  }
  EXPECT_EQ(found, 1u);
}

TEST(fp8, files_keep_every_bit) {
  const program p = network();
  const ranges known = calibrate(p, values_to_quantize(p, fp8_options{}), eigen_target(), once());
  for (const dtype t : float8_types)
    for (const bool per_channel : {true, false}) {
      const program made = to_fp8(p, known, {.type = t, .per_channel = per_channel}).graph;
      const std::string bytes = onnx::export_model(made);
      EXPECT_THAT(bytes, HasSubstr("QuantizeLinear"));
      const program back = onnx::parse_model(std::as_bytes(std::span(bytes.data(), bytes.size())), ".").graph;
      const auto a = first_result(made, scaled_input(1), eigen_target()),
                 b = first_result(back, scaled_input(1), eigen_target());
      for (std::size_t k = 0; k < a.size(); ++k) EXPECT_FLOAT_EQ(a[k], b[k]) << to_string(t);
      // and once more, as it was
      const program again = prepared(back);
      EXPECT_TRUE(values_to_quantize(again, fp8_options{.type = t}).empty());
      const std::string twice = onnx::export_model(to_fp8(again, {}, {.type = t, .per_channel = per_channel}).graph);
      const program back2 = onnx::parse_model(std::as_bytes(std::span(twice.data(), twice.size())), ".").graph;
      const auto c = first_result(back2, scaled_input(1), eigen_target());
      for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], c[k], 1e-4F) << to_string(t);
    }
}

TEST(fp8, mistakes_are_named) {
  const program p = network();
  EXPECT_THAT(message_of([&] { to_fp8(p, {}, {.type = dtype::f8e8m0}); }), HasSubstr("f8e8m0"));
  EXPECT_THAT(message_of([&] { to_fp8(p, {}); }), HasSubstr("ranges fit 0 of 2 values"));
  EXPECT_THAT(message_of([&] { with_precision(p, {.to = precision::fp8}); }), HasSubstr("fp8 needs the ranges"));
  EXPECT_THAT(message_of([&] { float8_named("f8"); }),
              HasSubstr("f8e4m3fn, f8e5m2, f8e4m3fnuz, f8e5m2fnuz, found 'f8'"));
  const quantized_program made = to_fp8(p, {{"x", {.whole = {-1, 1}}}});
  ASSERT_EQ(made.note.remarks.size(), 2u);
  EXPECT_THAT(made.note.remarks[0].str() + made.note.remarks[1].str(),
              ::testing::AllOf(HasSubstr("ranges fit 1 of 2 values"), HasSubstr("'second' stays in floats")));
}

}  // namespace
}  // namespace kiln::quantize
