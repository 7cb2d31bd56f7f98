#include "kiln/quantize/calibration.hpp"

#include <gmock/gmock.h>

#include <array>
#include <limits>

#include "kiln/onnx/import.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/op/dynamic/selection.hpp"
#include "quantize/message_of.hpp"
#include "runtime/compare.hpp"

namespace kiln::quantize {
namespace {

using test::message_of;

using kiln::testing::random_argument;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two inputs of any number of rows; "sum" is named, "half" an output.
program small_program() {
  builder b;
  const dimension rows = dimension::symbol("rows", 0, 100000);
  const value x = b.input("x", dtype::f32, {rows, 3}), y = b.input("y", dtype::f32, {rows, 3});
  b.label = text("sum");
  const value sum = x + y;
  b.label = text();
  b.output((sum * 0.5f).relu(), "half");
  return b.finish();
}

argument rows_of(std::vector<float> values) {
  return argument::of<float>({static_cast<std::int64_t>(values.size() / 3), 3}, std::span<const float>(values));
}

sample both(std::vector<float> x, std::vector<float> y) {
  return {{"x", rows_of(std::move(x))}, {"y", rows_of(std::move(y))}};
}

calibration_data data_of(std::vector<sample> samples) {
  return [samples, next = std::size_t{0}]() mutable {
    return next < samples.size() ? std::optional(samples[next++]) : std::nullopt;
  };
}

std::vector<std::string> names(std::initializer_list<const char*> all) { return {all.begin(), all.end()}; }

TEST(calibration, ranges_by_name_of_inputs_outputs_and_the_middle) {
  const program p = small_program();
  const auto watched = values_named(p, names({"x", "sum", "half"}));
  const ranges r = calibrate(p, watched, reference_target(),
                             data_of({both({1, 2, 3}, {0, 0, 1}), both({-8, 0, 1, 2, 0, 0}, {0, 1, 0, 0, 0, 9})}));
  ASSERT_EQ(r.size(), 3u);
  EXPECT_EQ(r.at("x").whole, (range{-8, 3}));
  EXPECT_EQ(r.at("sum").whole, (range{-8, 9}));
  EXPECT_EQ(r.at("half").whole, (range{0, 4.5}));
}

TEST(calibration, targets_agree) {
  const program p = small_program();
  std::vector<sample> samples;
  for (unsigned i = 0; i < 5; ++i)
    samples.push_back({{"x", random_argument({dtype::f32, {10 * i + 1, 3}}, i)},
                       {"y", random_argument({dtype::f32, {10 * i + 1, 3}}, i + 100)}});
  calibration_options o;
  o.method = calibration_method::entropy;
  const auto watched = float_values(p);
  EXPECT_EQ(calibrate(p, watched, eigen_target(), data_of(samples), o),
            calibrate(p, watched, reference_target(), data_of(samples), o));
}

TEST(calibration, batches_are_averaged) {
  const program p = small_program();
  calibration_options o;
  o.moving_average = true, o.averaging_constant = 0.25;
  const std::vector<sample> samples = {both({0, 0, 4}, {0, 0, 0}), both({0, 0, 8}, {0, 0, 0}),
                                       both({0, 0, 2}, {0, 0, 0}), both({0, 0, 0}, {0, 0, 0})};
  std::vector<std::size_t> seen;
  const ranges r = calibrate(p, values_named(p, names({"x"})), reference_target(), data_of(samples), o, {}, 2,
                             [&](std::size_t n) { seen.push_back(n); });
  EXPECT_EQ(r.at("x").whole, (range{0, 6 + 0.25 * (1 - 6)}));
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4));
}

TEST(calibration, every_float_that_depends_on_an_input) {
  const program p = onnx::read_model("examples/models/digits/model.onnx").graph;
  const auto watched = float_values(p);
  EXPECT_EQ(watched.front().name, "image");
  EXPECT_EQ(watched.back().name, p.main().output_names[0].str());
  std::set<std::string> once;
  for (const watched_value& w : watched) {
    EXPECT_TRUE(once.insert(w.name).second) << w.name;
    EXPECT_NE(p.main().producer(w.value).kind, instruction_kind::literal) << w.name;
  }
}

// A node that became several instructions: the last one has its name, the others numbers behind it, in whatever sizes.
TEST(calibration, values_of_one_node_are_numbered) {
  const auto names_in = [](const dims& lens) {
    builder b;
    const value x = b.input("x", dtype::f32, lens);
    b.label = text("other");
    const value y = x.relu();
    b.label = text("norm");
    const value z = (x * x).reduce_mean({-1}) + b.constant<float>(dtype::f32, {1}, std::vector<float>{1});
    b.output(y - z, "y");
    const program p = b.finish();
    std::vector<std::string> out;
    for (const watched_value& w : float_values(p)) {
      out.push_back(w.name);
      EXPECT_TRUE(is_unnamed(w.name) || values_named(p, std::array{w.name})[0].value == w.value) << w.name;
    }
    return out;
  };
  const auto names = names_in({2, 3});
  EXPECT_THAT(names, ::testing::IsSupersetOf({"x", "other", "norm#0", "norm#1", "y"}));
  for (const std::string& name : names) EXPECT_FALSE(is_unnamed(name)) << name;
  EXPECT_FALSE(is_unnamed("%") || is_unnamed("5") || is_unnamed("%a"));
  EXPECT_TRUE(is_unnamed("%17") && is_unnamed("%17.1"));
}

TEST(calibration, digits_in_any_batch_size) {
  const program p = onnx::read_model("examples/models/digits/model.onnx").graph;
  const argument scans = onnx::read_tensor("examples/models/digits/test_data_set_0/input_0.pb").value;
  const std::string input = p.main().producer(p.main().parameters()[0]).name.str();
  const std::int64_t all = scans.get_shape().lens[0].value();
  ASSERT_GT(all, 6);
  const auto part = [&](std::int64_t begin, std::int64_t count) {
    return sample{{input, argument::of<float>({count, 1, 8, 8}, scans.as<float>().subspan(64 * begin, 64 * count))}};
  };
  const auto watched = float_values(p);
  const ranges one = calibrate(p, watched, eigen_target(), data_of({part(0, all)}));
  const ranges parts = calibrate(p, watched, eigen_target(), data_of({part(0, 1), part(1, 4), part(5, all - 5)}));
  ASSERT_EQ(one.size(), watched.size());
  for (const auto& [name, r] : one) {
    EXPECT_NEAR(r.whole.low, parts.at(name).whole.low, 1e-5 * r.whole.magnitude()) << name;
    EXPECT_NEAR(r.whole.high, parts.at(name).whole.high, 1e-5 * r.whole.magnitude()) << name;
  }
  const range output = one.at(p.main().output_names[0].str()).whole;  // probabilities
  EXPECT_GE(output.low, 0);
  EXPECT_LE(output.high, 1 + 1e-6);
  EXPECT_GT(output.high, 0.5);
}

TEST(calibration, sizes_that_only_a_run_knows) {
  builder b;
  const value x = b.input("x", dtype::f32, {dimension::symbol("n", 0, 100)});
  const value kept = b.add(op::compress{.flat = true, .count = dimension::symbol("kept", 0, 100)}, x * 2.0f,
                           x > b.scalar(dtype::f32, 0.0f));
  b.output(kept, "kept");
  const program p = b.finish();
  const auto watched = values_named(p, names({"x", "kept"}));
  const auto sample_of = [](std::vector<float> v) {
    return sample{{"x", argument::of<float>({static_cast<std::int64_t>(v.size())}, std::span<const float>(v))}};
  };
  const ranges r =
      calibrate(p, watched, eigen_target(), data_of({sample_of({1, -2}), sample_of({3, 4}), sample_of({})}));
  EXPECT_EQ(r.at("x").whole, (range{-2, 4}));
  EXPECT_EQ(r.at("kept").whole, (range{2, 8}));
}

TEST(calibration, no_data_is_an_error) {
  const program p = small_program();
  EXPECT_THAT(
      message_of([&] { calibrate(p, float_values(p), reference_target(), data_of({})); }, errc::invalid_argument),
      HasSubstr("found none"));
  EXPECT_THAT(message_of([&] { calibrate(p, {}, reference_target(), data_of({})); }, errc::invalid_argument),
              HasSubstr("watches values"));
}

TEST(calibration, a_sample_without_an_input_is_an_error) {
  const program p = small_program();
  const auto run = [&](const sample& second) {
    calibrate(p, float_values(p), reference_target(), data_of({both({0, 0, 0}, {0, 0, 0}), second}));
  };
  EXPECT_THAT(message_of(
                  [&] {
                    run({{"x", rows_of({1, 2, 3})}});
                  },
                  errc::invalid_argument),
              AllOf(HasSubstr("'y'"), HasSubstr("sample 2")));
  sample more = both({0, 0, 0}, {0, 0, 0});
  more["z"] = rows_of({1, 2, 3});
  EXPECT_THAT(message_of([&] { run(more); }, errc::not_found), AllOf(HasSubstr("z"), HasSubstr("sample 2")));
  EXPECT_THAT(message_of(
                  [&] {
                    run({{"x", rows_of({1, 2, 3})}, {"y", argument(shape{dtype::f32, {1, 4}})}});
                  },
                  errc::shape_mismatch),
              AllOf(HasSubstr("y"), HasSubstr("sample 2")));
}

TEST(calibration, values_that_are_not_finite_are_an_error) {
  const program p = small_program();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  const auto watched = values_named(p, names({"x", "y", "sum"}));
  const auto message = [&](float x, float y, const calibration_options& o) {
    return message_of(
        [&] {
          calibrate(p, watched, reference_target(), data_of({both({x, x, 0}, {0, 0, y})}), o);
        },
        errc::invalid_argument);
  };
  EXPECT_THAT(message(nan, 0, {}), HasSubstr("found 2 NaN in 'x'; 2 NaN in 'sum'"));
  EXPECT_THAT(message(1, infinite, {}), HasSubstr("found 1 infinite values in 'y'; 1 infinite values in 'sum'"));
  calibration_options o;
  o.ignore_infinities = true;
  EXPECT_THAT(message(nan, infinite, o), HasSubstr("found 2 NaN in 'x'; 2 NaN in 'sum'"));
  EXPECT_EQ(message(1, infinite, o), "no error");
}

TEST(calibration, wrong_questions_are_errors) {
  const program p = small_program();
  EXPECT_THAT(message_of([&] { values_named(p, names({"sum", "product"})); }, errc::not_found), HasSubstr("'product'"));
  const value_id x = p.main().parameters()[0];
  EXPECT_THAT(message_of(
                  [&] {
                    calibrator(p, {{"x", x}, {"x", x}}, reference_target());
                  },
                  errc::invalid_argument),
              HasSubstr("'x' again"));
  EXPECT_THAT(message_of(
                  [&] {
                    calibrator(p, {{"z", {999, 0}}}, reference_target());
                  },
                  errc::invalid_argument),
              HasSubstr("'z'"));
  builder b;
  b.output(b.input("ids", dtype::i64, {3}));
  const program integers = b.finish();
  EXPECT_THAT(message_of([&] { calibrator(integers, values_named(integers, names({"ids"})), reference_target()); },
                         errc::unsupported),
              AllOf(HasSubstr("ids"), HasSubstr("i64")));
}

TEST(calibration, options_that_contradict_each_other_are_errors) {
  using enum calibration_method;
  const auto refused = [](calibration_method m, const std::function<void(calibration_options&)>& change) {
    calibration_options o;
    o.method = m;
    check(o);
    change(o);
    EXPECT_NE(message_of([&] { check(o); }, errc::invalid_argument), "no error");
  };
  refused(min_max, [](auto& o) { o.averaging_constant = 1.5; });
  refused(percentile, [](auto& o) { o.percentile = 101; });
  refused(percentile, [](auto& o) { o.percentile = -1; });
  refused(percentile, [](auto& o) { o.percentile = std::numeric_limits<double>::quiet_NaN(); });
  refused(percentile, [](auto& o) { o.per_channel = true; });
  refused(entropy, [](auto& o) { o.moving_average = true; });
  refused(entropy, [](auto& o) { o.quantized_bins = 129; });
  refused(entropy, [](auto& o) { o.quantized_bins = 1; });
  refused(distribution, [](auto& o) { o.bins = 511; });
  refused(percentile, [](auto& o) { o.bins = std::size_t{1} << 40; });
}

}  // namespace
}  // namespace kiln::quantize
