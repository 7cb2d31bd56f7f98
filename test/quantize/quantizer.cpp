#include "kiln/quantize/quantizer.hpp"

#include <gmock/gmock.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/quantize/options.hpp"
#include "kiln/quantize/smooth.hpp"
#include "pass/evaluate.hpp"
#include "quantize/message_of.hpp"

namespace kiln::test {
namespace {

using namespace quantize;
using ::testing::HasSubstr;

program network() {
  builder b;
  dice d{3};
  const auto weights = [&](const dims& lens) { return b.constant(random_literal({dtype::f32, lens}, d)); };
  b.label = text("first, of two");
  const value y = b.input("x", dtype::f32, {4, 32}).dot(weights({32, 32})).relu();
  b.label = text("second");
  b.output(y.dot(weights({32, 8})), "y");
  return b.finish();
}

const std::vector<sample> all = [] {
  dice d{8};
  std::vector<sample> out;
  for (int k = 0; k < 3; ++k) out.push_back({{"x", argument(random_literal({dtype::f32, {4, 32}}, d))}});
  return out;
}();
const repeated_data samples = [] {
  return [k = std::size_t{0}]() mutable { return k < all.size() ? std::optional(all[k++]) : std::nullopt; };
};

quantizer_options options(std::initializer_list<std::pair<std::string_view, std::string_view>> set) {
  quantizer_options out;
  for (const auto& [name, value] : set) set_option(out, name, value);
  return out;
}

std::string text_of(const program& p) { return print(p).str(); }

TEST(quantizer, ranges_come_from_samples_where_none_are_given) {
  const eigen_target t;
  const quantizer q(network(), options({{"precision", "int8"}, {"method", "percentile"}, {"percentile", "90"}}), t);
  std::size_t counted = 0;
  const ranges known = q.calibrate(samples(), [&](std::string_view what, std::size_t n) {
    EXPECT_EQ(what, "calibrating");
    counted = n;
  });
  EXPECT_EQ(counted, 3u);
  EXPECT_EQ(known, calibrate(q.prepared(), values_to_quantize(q.prepared()), t, samples(),
                             {.method = calibration_method::percentile, .percentile = 90}));
  EXPECT_EQ(text_of(q.quantize(known, {}).made.graph), text_of(q.quantize({}, samples).made.graph));
  EXPECT_EQ(text_of(q.quantize(known, {}).made.graph), text_of(to_int8(q.prepared(), known).graph));
}

TEST(quantizer, options_reach_what_they_are_for) {
  const eigen_target t;
  const auto made = [&](std::initializer_list<std::pair<std::string_view, std::string_view>> set, bool by_samples) {
    return quantizer(network(), options(set), t).quantize({}, by_samples ? samples : repeated_data{}).made;
  };
  const program p = prepared(network());
  const auto equal = [&](const quantized_program& a, const quantized_program& b) {
    EXPECT_EQ(text_of(a.graph), text_of(b.graph));
  };
  const ranges known = quantizer(network(), options({{"precision", "int8"}}), t).calibrate(samples());
  equal(made({{"precision", "int8"}, {"exclude", "first\\, of two"}, {"reduce_range", "true"}}, true),
        to_int8(p, known, {.reduced = true, .exclude = {"first, of two"}}));
  equal(made({{"precision", "dynamic-int8"}, {"per_channel", "false"}}, false),
        to_dynamic_int8(p, {.weights = {.per_channel = false}}));
  equal(made({{"precision", "int4"}, {"bits", "8"}, {"block_size", "16"}, {"symmetric", "false"}}, false),
        to_int4(p, {.format = {8, 16, false}}));
  equal(made({{"precision", "int4"}, {"weight_method", "gptq"}, {"exclude", "second"}}, true),
        to_int4(p, {.method = weight_method::gptq, .exclude = {"second"}}, samples(), t));
  equal(made({{"precision", "int8"}, {"min_sqnr", "200"}}, true), {p, {}});
  equal(made({{"precision", "bf16"}, {"ops", "dot"}}, false),
        with_precision(p, {.to = precision::bf16, .ops = {"dot"}, .is_prepared = true}));
  equal(made({{"precision", "int8"}, {"overrides", R"({"x": {"type": "i8", "low": -2, "high": 3}})"}}, true),
        to_int8(p, known, {.overrides = {{"x", {.type = dtype::i8, .low = -2, .high = 3}}}}));
}

// Both passes over the samples: channels first, then what the smoothed program needs.
TEST(quantizer, smooths_by_samples) {
  const eigen_target t;
  const program p = prepared(network());
  const ranges channels = calibrate(p, values_to_smooth(p), t, samples(), channel_calibration());
  for (const bool fold : {true, false}) {
    const program smooth = smoothed(p, channels, {.alpha = .75, .fold = fold}).graph;
    const ranges known = calibrate(smooth, values_to_quantize(smooth), t, samples());
    const auto o =
        options({{"precision", "int8"}, {"smooth_quant", ".75"}, {"smooth_quant_folding", fold ? "1" : "0"}});
    const quantizer q(network(), o, t);
    std::vector<std::string> steps;
    const quantization made = q.quantize({}, samples, [&](std::string_view what, std::size_t) {
      if (steps.empty() || steps.back() != what) steps.emplace_back(what);
    });
    EXPECT_EQ(steps, (std::vector<std::string>{"smoothing", "calibrating"}));
    EXPECT_EQ(text_of(made.prepared), text_of(smooth));
    EXPECT_EQ(made.known, known);
    EXPECT_EQ(text_of(made.made.graph), text_of(to_int8(smooth, known).graph));
    EXPECT_EQ(made.made.note.remarks.back().view(), "2 values are smoothed");
    EXPECT_THAT(message_of([&] { q.quantize(known, samples); }), HasSubstr("smoothing changes the ranges"));
    EXPECT_THAT(message_of([&] { q.quantize({}, {}); }), HasSubstr("smoothing needs samples"));
    EXPECT_THAT(message_of([&] { q.calibrate(samples()); }), HasSubstr("found when the program is quantized"));
  }
  const auto wrong = [&](std::string_view name, std::string_view value) {
    const auto o = options({{"precision", "int8"}, {name, value}});
    return message_of([&] { quantizer(network(), o, t).quantize({}, samples); }, errc::invalid_argument);
  };
  EXPECT_THAT(wrong("smooth_quant", "2"), HasSubstr("alpha"));
  EXPECT_THAT(wrong("smooth_quant_folding", "false"), HasSubstr("'smooth_quant_folding' is of 'smooth_quant'"));
}

TEST(quantizer, tells_what_it_was_made_by) {
  const eigen_target t;
  const quantizer q(network(), options({{"precision", "int8"}, {"min_sqnr", "20"}}), t);
  const quantization made = q.quantize({}, samples);
  EXPECT_EQ(made.known, q.calibrate(samples()));
  ASSERT_TRUE(made.report);
  EXPECT_GE(made.report->outputs.at(0).sqnr, 20);
  EXPECT_EQ(text_of(made.prepared), text_of(q.prepared()));
}

TEST(quantizer, what_is_missing_or_has_no_use_is_an_error) {
  const eigen_target t;
  const auto message = [&](std::initializer_list<std::pair<std::string_view, std::string_view>> set,
                           const ranges& known, const repeated_data& data) {
    return message_of([&] { quantizer(network(), options(set), t).quantize(known, data); }, errc::invalid_argument);
  };
  const ranges some{{"x", {.whole = {-1, 1}}}};
  EXPECT_THAT(message({}, {}, {}), HasSubstr("a precision to quantize to"));
  EXPECT_THAT(message({{"precision", "int8"}}, {}, {}), HasSubstr("int8 needs the ranges"));
  EXPECT_THAT(message({{"precision", "int8"}}, some, samples), HasSubstr("ranges are given"));
  EXPECT_THAT(message({{"precision", "int8"}, {"min_sqnr", "3"}}, some, {}), HasSubstr("min_sqnr compares"));
  EXPECT_THAT(message({{"precision", "bf16"}}, some, {}), HasSubstr("ranges have no use: bf16 needs none"));
  EXPECT_THAT(message({{"precision", "int4"}}, {}, samples), HasSubstr("samples have no use: int4 needs none"));
  EXPECT_THAT(message({{"precision", "int4"}, {"weight_method", "gptq"}}, {}, {}), HasSubstr("gptq needs samples"));
  EXPECT_THAT(message_of(
                  [&] {
                    quantizer(network(), options({{"precision", "fp16"}, {"ops", "tan"}}), t);
                  },
                  errc::not_found),
              HasSubstr("the program has no op 'tan'"));
  EXPECT_EQ(message({{"precision", "fp16"}, {"bits", "2"}}, {}, {}),
            "invalid argument: option 'bits' means nothing to fp16: found '2'");
  EXPECT_THAT(message_of([&] {
                quantizer(network(), options({{"precision", "int4"}}), t).calibrate(samples());
              }),
              HasSubstr("ranges have no use"));
  EXPECT_THAT(message_of([] { options({{"bit", "2"}}); }, errc::not_found), HasSubstr("nearest 'bits'"));
}

TEST(quantizer, every_option_is_text_and_back) {
  quantizer_options o;
  for (const quantizer_option& row : quantizer_option_table()) {
    EXPECT_EQ(get_option(o, row.name), row.default_text());
    set_option(o, row.name, row.default_text());
  }
  for (const auto& [name, value] : {std::pair{"ops", "dot,convolution"},
                                    {"exclude", "a\\,b,c\\\\d"},
                                    {"min_sqnr", "31.5"},
                                    {"smooth_quant", "0.5"},
                                    {"overrides", R"({"x":{"type":"u4","symmetric":true,"scale":0.5,"zero":3}})"},
                                    {"symmetric_ranges", "true"}}) {
    set_option(o, name, value);
    EXPECT_EQ(get_option(o, name), value);
  }
  EXPECT_EQ(o.exclude, (std::vector<std::string>{"a,b", "c\\d"}));
  set_option(o, "min_sqnr", "");
  EXPECT_FALSE(o.min_sqnr);
  set_option(o, "overrides", "");
  EXPECT_TRUE(o.how.int8.overrides.empty());
  const auto wrong = [&](std::string_view json) {
    return message_of([&] { set_option(o, "overrides", json); }, errc::invalid_argument);
  };
  EXPECT_THAT(wrong("{"), HasSubstr("option 'overrides'"));
  EXPECT_THAT(wrong("[]"), HasSubstr("expected an object of values by name"));
  EXPECT_THAT(wrong(R"({"x": 1})"), HasSubstr("'x': invalid argument: expected an object"));
  EXPECT_THAT(wrong(R"({"x": {"type": "i9"}})"), HasSubstr("'x', type: invalid argument: no type 'i9'"));
  EXPECT_THAT(wrong(R"({"x": {"kind": "i8"}})"), HasSubstr("'x', kind: invalid argument: expected type, symmetric"));
  EXPECT_THAT(wrong(R"({"x": {"low": "a"}})"), HasSubstr("'x', low"));
  EXPECT_THROW(set_option(o, "exclude", "a,,b"), error);
  EXPECT_THROW(set_option(o, "exclude", "a,a"), error);
  EXPECT_EQ(o.exclude.size(), 2u);
}

}  // namespace
}  // namespace kiln::test
