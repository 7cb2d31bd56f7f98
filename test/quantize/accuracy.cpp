#include "kiln/quantize/accuracy.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "kiln/quantize/int8.hpp"
#include "pass/evaluate.hpp"
#include "runtime/compare.hpp"

namespace kiln::quantize {
namespace {

using kiln::testing::random_argument;
using ::testing::HasSubstr;

tensor of(const argument& a) { return tensor_of(a); }
argument floats(const dims& lens, const std::vector<float>& v) {
  return argument::of<float>(lens, std::span<const float>(v));
}

TEST(accuracy, errors_of_a_tensor_over_samples) {
  error_statistics e;
  e.add(of(floats({2}, {3, 0})), of(floats({2}, {3, 1})));
  e.add(of(floats({1}, {4})), of(floats({1}, {4})));
  EXPECT_DOUBLE_EQ(e.noise(), 1.0 / 25);
  EXPECT_DOUBLE_EQ(e.sqnr(), 20 * std::log10(5));
  EXPECT_DOUBLE_EQ(e.cosine(), 25 / (5 * std::sqrt(26)));
  EXPECT_EQ(e.seen(), (range{0, 4}));
}

TEST(accuracy, equal_zero_and_broken_tensors) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  error_statistics equal, zero, lost, broken;
  equal.add(of(floats({2}, {1, -infinite})), of(floats({2}, {1, -infinite})));
  EXPECT_EQ(equal.sqnr(), infinite);
  EXPECT_EQ(equal.cosine(), 1);
  zero.add(of(floats({1}, {0})), of(floats({1}, {0})));
  EXPECT_EQ(zero.cosine(), 1);
  lost.add(of(floats({1}, {0})), of(floats({1}, {2})));
  EXPECT_EQ(lost.sqnr(), -infinite);
  EXPECT_EQ(lost.cosine(), 0);
  broken.add(of(floats({1}, {1})), of(floats({1}, {std::nanf("")})));
  EXPECT_TRUE(std::isnan(broken.sqnr()));
  EXPECT_THROW(broken.add(of(floats({1}, {1})), of(floats({2}, {1, 1}))), error);
}

TEST(accuracy, saturation_begins_beyond_the_last_code) {
  error_statistics e;
  const tensor_quantization q{{dtype::i8, true}, {0.5f, 0}};  // -63.5 to 63.5
  e.add_saturation(of(floats({4}, {63.5f, 63.74f, 63.8f, -64})), q);
  EXPECT_DOUBLE_EQ(e.saturation(), 0.5);
  EXPECT_EQ(error_statistics().saturation(), 0);
}

TEST(accuracy, top1_compares_rows) {
  error_statistics e;
  EXPECT_FALSE(e.top1());
  e.add_top1(of(floats({2, 3}, {1, 2, 3, 3, 2, 1})), of(floats({2, 3}, {1, 2, 4, 0, 2, 1})));
  e.add_top1(of(floats({2, 3}, {1, 2, 3, 3, 2, 1})), of(floats({2, 3}, {1, 2, 4, 9, 2, 1})));
  EXPECT_DOUBLE_EQ(*e.top1(), 0.75);
}

// Rounds to codes of a scale, as a quantized and again dequantized value is.
value through_codes(value x, double scale, double most) {
  const value codes = (x / scale + 0.5).floor();
  return codes.min(codes.owner().scalar(dtype::f32, most)).max(codes.owner().scalar(dtype::f32, -most)) * scale;
}

// Four layers; in the quantized form, the values of one have a scale that is far too coarse.
program layers(int bad) {
  builder b;
  value x = b.input("x", dtype::f32, {dimension::symbol("rows", 1, 1000), 16});
  for (int i = 0; i < 4; ++i) {
    const argument w = random_argument({dtype::f32, {16, 16}}, static_cast<unsigned>(i), -0.4, 0.4);
    b.label = text("layer" + std::to_string(i));
    value y = x.dot(b.constant(w.to_literal())).tanh();
    if (bad >= 0) y = through_codes(y, i == bad ? 0.4 : 1.0 / 127, 127);
    b.label = text();
    x = y;
  }
  b.output(x, "scores");
  return b.finish();
}

calibration_data some_data(unsigned samples) {
  return [samples, made = 0u]() mutable -> std::optional<sample> {
    if (made == samples) return std::nullopt;
    ++made;
    return sample{{"x", random_argument({dtype::f32, {5 + made, 16}}, made)}};
  };
}

accuracy_report report_of(int bad) {
  const program reference = layers(-1), quantized = layers(bad);
  const std::vector<std::string> names = {"layer0", "layer1", "layer2", "layer3"};
  std::map<std::string, tensor_quantization> q;
  q["layer1"] = {{dtype::i8, true}, {0.4f / 127, 0}};
  return compare_accuracy({reference, quantized, values_named(reference, names), values_named(quantized, names), q},
                          eigen_target(), some_data(4));
}

TEST(accuracy, the_planted_bad_layer_comes_first) {
  for (int bad = 0; bad < 4; ++bad) {
    const accuracy_report r = report_of(bad);
    ASSERT_EQ(r.tensors.size(), 4u);
    EXPECT_EQ(r.tensors[0].name, "layer" + std::to_string(bad));
    EXPECT_LT(r.tensors[0].sqnr, 25);
    for (const tensor_accuracy& t : r.tensors) {
      EXPECT_EQ(t.quantization.has_value(), t.name == "layer1");
      EXPECT_EQ(t.saturation > 0, t.name == "layer1") << t.name;
      if (t.name < r.tensors[0].name) {
        EXPECT_GT(t.sqnr, 30) << t.name;
      }
      EXPECT_FALSE(t.top1);
    }
    ASSERT_EQ(r.outputs.size(), 1u);
    EXPECT_EQ(r.samples, 4u);
    EXPECT_GT(*r.outputs[0].top1, 0.2);
    EXPECT_LT(*r.outputs[0].top1, 1);
  }
}

TEST(accuracy, a_program_beside_itself_differs_nowhere) {
  const program p = layers(-1);
  const accuracy_report r =
      compare_accuracy({p, p, float_values(p), float_values(p)}, reference_target(), some_data(2));
  for (const tensor_accuracy& t : r.tensors) EXPECT_EQ(t.sqnr, std::numeric_limits<double>::infinity()) << t.name;
  EXPECT_EQ(*r.outputs[0].top1, 1);
  EXPECT_EQ(r.outputs[0].added_noise, 0);
}

// Numbers of values mean something in their own program alone.
TEST(accuracy, unnamed_values_are_not_compared) {
  const auto build = [](bool longer) {
    builder b;
    value x = b.input("x", dtype::f32, {dimension::symbol("rows", 1, 1000), 16});
    if (longer) x = (x + 1.0f).reduce_sum({1}).broadcast_to(x.get_shape().lens) * 0.0f + x;
    b.output((x * 2.0f).tanh().neg(), "y");
    return b.finish();
  };
  const program p = build(false), q = build(true);
  const accuracy_report r =
      compare_accuracy({p, q, float_values(p), float_values(q)}, reference_target(), some_data(2));
  for (const tensor_accuracy& t : r.tensors) EXPECT_FALSE(is_unnamed(t.name)) << t.name;
  EXPECT_EQ(r.outputs.size(), 1u);
}

TEST(accuracy, questions_without_an_answer) {
  const program p = layers(-1);
  EXPECT_THROW(compare_accuracy({p, p, {}, {}}, reference_target(), some_data(0)), error);
  builder b;
  b.output(b.input("x", dtype::f32, {3}).relu(), "other");
  const program other = b.finish();
  EXPECT_THROW(compare_accuracy({p, other, {}, {}}, reference_target(), some_data(1)), error);
}

// What the reference computes from the first samples is asked for once.
TEST(accuracy, a_reference_keeps_values_as_far_as_its_bytes_go) {
  const program p = layers(-1);
  const reference_target t;
  const auto watched = float_values(p);
  const auto other = [&] {  // the same extents, other values
    return [made = 0u]() mutable -> std::optional<sample> {
      if (made == 3) return std::nullopt;
      ++made;
      return sample{{"x", random_argument({dtype::f32, {5 + made, 16}}, 100 + made)}};
    };
  };
  const auto changed = [&](std::size_t bytes) {
    accuracy_reference r(p, watched, t, {}, bytes);
    const accuracy_report first = r.compare(p, watched, {}, some_data(3));
    EXPECT_TRUE(std::isinf(first.outputs[0].sqnr));
    return !std::isinf(r.compare(p, watched, {}, other()).outputs[0].sqnr);
  };
  EXPECT_FALSE(changed(0));
  EXPECT_FALSE(changed(100));
  EXPECT_TRUE(changed(1 << 20));
  EXPECT_TRUE(changed(8000)) << "the first sample alone";
}

// As those that read it see it: an input is itself and its bytes' floats, an output stays exact.
TEST(accuracy, quantized_values_are_known_by_the_program) {
  builder b;
  test::dice d{3};
  const auto weights = [&] { return b.constant(test::random_literal({dtype::f32, {16, 16}}, d)); };
  const value x = b.input("x", dtype::f32, {5, 16});
  b.label = text("first");
  const value y = x.dot(weights());
  b.label = text("relu");
  const value z = y.relu();
  b.output(z, "z");
  b.label = text("second");
  b.output(z.dot(weights()).tanh().dot(weights()), "y");
  const program p = prepared(b.finish());
  ranges known;
  for (const watched_value& w : values_to_quantize(p)) known[w.name] = {.whole = {-1, 3}};
  const program q = to_int8(p, known).graph;
  const accuracy_question question = question_of(p, q);
  EXPECT_EQ(question.quantizations.size(), 3u);
  for (const char* const name : {"x", "z"}) {
    ASSERT_TRUE(question.quantizations.contains(name)) << name;
    const tensor_quantization& how = question.quantizations.at(name);
    EXPECT_EQ(how.as.type, dtype::u8);
    EXPECT_EQ(how.with, *parameters_for({-1, 3}, {dtype::u8}));
  }
  const auto one = [given = false]() mutable -> std::optional<sample> {
    if (std::exchange(given, true)) return std::nullopt;
    return sample{{"x", random_argument({dtype::f32, {5, 16}}, 1, -2, 2)}};
  };
  const accuracy_report r = compare_accuracy(question, reference_target(), one);
  std::map<std::string, tensor_accuracy> of;
  for (const tensor_accuracy& t : r.tensors) of[t.name] = t;
  EXPECT_NEAR(of.at("x").saturation, .25, .1);  // below -1
  EXPECT_LT(of.at("x").sqnr, 20);
  EXPECT_LT(of.at("z").sqnr, of.at("first").sqnr);
  EXPECT_GT(of.at("z").saturation, 0);
  EXPECT_EQ(r.outputs[0].name, "z");
  EXPECT_GT(r.outputs[0].sqnr, of.at("z").sqnr);
  EXPECT_FALSE(r.outputs[0].quantization);
}

accuracy_report example() {
  accuracy_report r;
  r.samples = 3;
  tensor_accuracy t;
  t.name = "scores", t.seen = {0, 1}, t.sqnr = 31.25, t.cosine = 0.9995, t.top1 = 0.975;
  r.outputs.push_back(t);
  t = {};
  t.name = "conv", t.seen = {-2, 2.5}, t.sqnr = 20, t.cosine = 0.99, t.added_noise = 0.01, t.saturation = 0.00125;
  t.quantization = tensor_quantization{{dtype::i8, true}, {0.25f, 0}};
  r.tensors.push_back(t);
  t = {};
  t.name = "fc", t.sqnr = std::numeric_limits<double>::infinity(), t.cosine = 1;
  r.tensors.push_back(t);
  return r;
}

TEST(accuracy, text) {
  EXPECT_EQ(report_text(example()),
            "3 samples; signal to quantization noise of outputs\n"
            "  scores  31.2 dB, cosine 0.999500, adds 0.00e+00, range 0 to 1, top-1 97.50 %\n"
            "and of layers, the one that adds most noise first\n"
            "  conv    20.0 dB, cosine 0.990000, adds 1.00e-02, range -2 to 2.5, i8 scale 0.25 zero point 0, 0.1250 % "
            "saturate\n"
            "  fc      exact, cosine 1.000000, adds 0.00e+00, range 0 to 0\n");
}

TEST(accuracy, json) {
  const auto j = nlohmann::json::parse(report_json(example()));
  EXPECT_EQ(j["samples"], 3);
  EXPECT_EQ(j["outputs"][0]["top1"], 0.975);
  EXPECT_EQ(j["tensors"][0]["name"], "conv");
  EXPECT_EQ(j["tensors"][0]["scale"], 0.25);
  EXPECT_EQ(j["tensors"][0]["saturation"], 0.00125);
  EXPECT_EQ(j["tensors"][1]["sqnr"], "inf");
  EXPECT_FALSE(j["tensors"][1].contains("scale"));
}

TEST(accuracy, a_picture_is_colored_by_the_noise) {
  const program p = layers(-1);
  accuracy_report r = report_of(2);
  r.tensors.erase(std::remove_if(r.tensors.begin(), r.tensors.end(), [](auto& t) { return t.name == "layer3"; }),
                  r.tensors.end());
  for (tensor_accuracy& t : r.tensors) t.sqnr = t.name == "layer2" ? 9.9 : t.name == "layer1" ? NAN : 39;
  r.outputs[0].sqnr = std::numeric_limits<double>::infinity();
  const std::string svg = report_svg(p, r);
  const auto color_of = [&](const std::string& title) -> std::string {
    const auto at = svg.find("<title>" + title);
    const auto fill = svg.find("fill=\"", at);
    return at == svg.npos ? "none" : svg.substr(fill + 6, 7);
  };
  const std::string worst = color_of("layer2: 9.9 dB, cosine ");
  EXPECT_EQ(color_of("layer1: nan"), worst);
  EXPECT_NE(color_of("layer0: 39.0 dB"), worst);
  EXPECT_EQ(color_of("scores: exact"), "#ffffff");
  EXPECT_EQ(color_of("layer3"), "none");
  EXPECT_THAT(svg, ::testing::AllOf(HasSubstr("below 10 dB"), HasSubstr("not compared"), HasSubstr(">dot<")));
}

}  // namespace
}  // namespace kiln::quantize
