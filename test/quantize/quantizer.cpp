#include "kiln/quantize/quantizer.hpp"

#include <gmock/gmock.h>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/graph/print.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/quantize/options.hpp"
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
  const ranges known = q.calibrate(samples(), [&](std::size_t n) { counted = n; });
  EXPECT_EQ(counted, 3u);
  EXPECT_EQ(known, calibrate(q.prepared(), values_to_quantize(q.prepared()), t, samples(),
                             {.method = calibration_method::percentile, .percentile = 90}));
  EXPECT_EQ(text_of(q.quantize(known, {}).graph), text_of(q.quantize({}, samples).graph));
  EXPECT_EQ(text_of(q.quantize(known, {}).graph), text_of(to_int8(q.prepared(), known).graph));
}

TEST(quantizer, options_reach_what_they_are_for) {
  const eigen_target t;
  const auto made = [&](std::initializer_list<std::pair<std::string_view, std::string_view>> set, bool by_samples) {
    return quantizer(network(), options(set), t).quantize({}, by_samples ? samples : repeated_data{});
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
                                    {"symmetric_ranges", "true"}}) {
    set_option(o, name, value);
    EXPECT_EQ(get_option(o, name), value);
  }
  EXPECT_EQ(o.exclude, (std::vector<std::string>{"a,b", "c\\d"}));
  set_option(o, "min_sqnr", "");
  EXPECT_FALSE(o.min_sqnr);
  EXPECT_THROW(set_option(o, "exclude", "a,,b"), error);
  EXPECT_THROW(set_option(o, "exclude", "a,a"), error);
  EXPECT_EQ(o.exclude.size(), 2u);
}

}  // namespace
}  // namespace kiln::test
