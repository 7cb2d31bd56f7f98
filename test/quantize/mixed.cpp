#include "kiln/quantize/mixed.hpp"

#include <gmock/gmock.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/builder.hpp"
#include "pass/evaluate.hpp"

namespace kiln::test {
namespace {

using namespace quantize;

// Three products, of which the second one has a feature a thousand times the others: bytes lose those.
program network() {
  builder b;
  dice d{3};
  const auto weights = [&](const dims& lens) { return random_literal({dtype::f32, lens}, d); };
  const value x = b.input("x", dtype::f32, {4, 32});
  b.label = text("first");
  const value h = x.dot(b.constant(weights({32, 32})));
  std::vector<float> scale(32, 1.0f);
  scale[5] = 1000;
  std::vector<float> back(32, 1.0f);
  back[5] = .001f;
  b.label = text("spread");
  const value wide = h * b.constant(dtype::f32, {32}, std::span<const float>(scale));
  const auto values = weights({32, 32}).to<float>();
  std::vector<float> bad(values.begin(), values.end());
  for (std::size_t k = 0; k < 32; ++k) bad[5 * 32 + k] *= .001f;
  b.label = text("second");
  const value y =
      (wide.relu() * b.scalar(dtype::f32, 1.0f)).dot(b.constant(dtype::f32, {32, 32}, std::span<const float>(bad)));
  b.label = text("third");
  b.output(y.relu().dot(b.constant(weights({32, 8}))), "y");
  return b.finish();
}

struct data_set {
  std::vector<sample> samples;
  std::size_t runs = 0;
  data_set() {
    dice d{8};
    for (int k = 0; k < 4; ++k) samples.push_back({{"x", argument(random_literal({dtype::f32, {4, 32}}, d))}});
  }
  repeated_data all() {
    return [this]() -> calibration_data {
      ++runs;
      return [this, k = std::size_t{0}]() mutable -> std::optional<sample> {
        return k < samples.size() ? std::optional(samples[k++]) : std::nullopt;
      };
    };
  }
};

TEST(mixed, the_worst_product_stays_in_floats) {
  const program p = prepared(network());
  const eigen_target t;
  data_set data;
  const ranges known = calibrate(p, values_to_quantize(p), t, data.all()());
  const mixed_program all = to_int8_within(p, 0, known, {}, data.all(), t);
  EXPECT_TRUE(all.in_floats.empty());
  ASSERT_LT(all.report.outputs[0].sqnr, 25);
  const mixed_program near = to_int8_within(p, 30, known, {}, data.all(), t);
  EXPECT_GE(near.report.outputs[0].sqnr, 30);
  ASSERT_EQ(near.in_floats.size(), 1u);
  EXPECT_EQ(near.in_floats[0], "second");
  EXPECT_EQ(near.made.note.counts.total() + 2, all.made.note.counts.total());  // a product and its value less
}

// What loses accuracy is what is read as bytes, not the product that it is computed by.
TEST(mixed, the_reader_of_a_value_that_bytes_do_not_hold_stays_in_floats) {
  program p = prepared(network());
  module_graph& m = p.main();
  for (std::uint32_t i = 0; i < m.size(); ++i)
    if (m[i].kind == instruction_kind::op && m[i].op.is<op::relu>()) {
      m[i].name = text("named");  // the first one
      break;
    }
  const eigen_target t;
  data_set data;
  const ranges known = calibrate(p, values_to_quantize(p), t, data.all()());
  ASSERT_TRUE(known.contains("named"));
  const mixed_program near = to_int8_within(p, 30, known, {}, data.all(), t);
  EXPECT_EQ(near.in_floats, std::vector<std::string>{"second"});
}

TEST(mixed, products_of_other_ops_are_no_candidates) {
  const program p = prepared(network());
  const eigen_target t;
  data_set data;
  const ranges known = calibrate(p, values_to_quantize(p), t, data.all()());
  int8_options convolutions;
  convolutions.ops = {"convolution"};
  EXPECT_THROW(to_int8_within(p, 30, known, convolutions, data.all(), t), error);
  EXPECT_THROW(to_int8_within(p, NAN, known, {}, data.all(), t), error);
}

TEST(mixed, at_worst_the_program_stays_as_it_is) {
  const program p = prepared(network());
  const eigen_target t;
  data_set data;
  const ranges known = calibrate(p, values_to_quantize(p), t, data.all()());
  const mixed_program same = to_int8_within(p, 200, known, {}, data.all(), t);
  EXPECT_EQ(same.in_floats.size(), 3u);
  EXPECT_EQ(same.made.note.counts.total(), 0u);
  EXPECT_EQ(same.made.note.remarks.size(), 3u);
  EXPECT_EQ(std::isinf(same.report.outputs[0].sqnr), true);
}

}  // namespace
}  // namespace kiln::test
