#include "kiln/op/nn.hpp"

#include "oracle.hpp"

namespace kiln::test {
namespace {

constexpr auto F = dtype::f32;
using op::attention, op::lrn, op::pooling, op::pooling_mode;

// pooling

constexpr shape image{F, {2, 3, 6, 7}};
static_assert(shape_from(pooling{.lengths = {2, 3}}, image) == shape{F, {2, 3, 5, 5}});
static_assert(shape_from(pooling{.lengths = {2, 2}, .stride = {2, 2}}, image) == shape{F, {2, 3, 3, 3}});
static_assert(shape_from(pooling{.lengths = {2, 2}, .stride = {2, 2}, .ceil_mode = true}, image) ==
              shape{F, {2, 3, 3, 4}});
static_assert(shape_from(pooling{.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 0}}, image) ==
              shape{F, {2, 3, 3, 3}});
static_assert(shape_from(pooling{.lengths = {2, 3}, .dilation = {5, 2}}, image) == shape{F, {2, 3, 1, 3}});
// the third window of (2 + 2 - 3) / 3 rounded up would start in the end padding
static_assert(shape_from(pooling{.lengths = {3}, .stride = {3}, .pads = {1, 1}, .ceil_mode = true},
                         shape{F, {1, 1, 2}}) == shape{F, {1, 1, 1}});
static_assert(shape_from(pooling{.lengths = {1, 2, 2}}, shape{dtype::u8, {1, 0, 4, 4, 4}}) ==
              shape{dtype::u8, {1, 0, 4, 3, 3}});

static_assert(fails(pooling{.lengths = {2, 2}}, errc::invalid_argument, "number of inputs", image, image));
static_assert(fails(pooling{.lengths = {2, 2}}, errc::unsupported, "dtype of the operand", image.with(dtype::boolean)));
static_assert(fails(pooling{.mode = pooling_mode::average, .lengths = {2, 2}}, errc::unsupported,
                    "dtype of the operand", image.with(dtype::i8)));
static_assert(fails(pooling{.lengths = {2}}, errc::shape_mismatch,
                    "an input has a batch, a channel and one to three spatial dims", shape{F, {2, 3}}));
static_assert(fails(pooling{}, errc::shape_mismatch, "lengths has an entry for each spatial dim", image));
static_assert(fails(pooling{.lengths = {2, 0}}, errc::shape_mismatch, "a window has at least one element", image));
static_assert(fails(pooling{.lengths = {2, 2}, .stride = {2}}, errc::shape_mismatch,
                    "stride has a positive entry for each spatial dim", image));
static_assert(fails(pooling{.lengths = {2, 2}, .dilation = {0, 1}}, errc::invalid_argument,
                    "dilation has a positive entry for each spatial dim", image));
static_assert(fails(pooling{.lengths = {2, 2}, .pads = {1, 1, 1}}, errc::shape_mismatch,
                    "pads has a begin and an end for each spatial dim", image));
static_assert(fails(pooling{.lengths = {7, 2}}, errc::shape_mismatch, "a window fits into the padded input", image));
static_assert(fails(pooling{.mode = pooling_mode::lp, .lengths = {2, 2}, .lp_order = 0}, errc::invalid_argument,
                    "lp_order is positive", image));

TEST(pooling, folds_windows) {
  KILN_EXPECT_RUN(f32({1, 1, 3}, 3, 3, 4), (pooling{.lengths = {2}}), f32({1, 1, 4}, 1, 3, 2, 4));
  KILN_EXPECT_RUN(f32({1, 1, 2}, 2, 3), (pooling{.mode = pooling_mode::average, .lengths = {2}, .stride = {2}}),
                  f32({1, 1, 4}, 1, 3, 2, 4));
  KILN_EXPECT_RUN(f32({1, 1, 1}, 5), (pooling{.mode = pooling_mode::lp, .lengths = {2}}), f32({1, 1, 2}, -3, 4));
  KILN_EXPECT_RUN(f32({1, 1, 1}, 7), (pooling{.mode = pooling_mode::lp, .lengths = {2}, .lp_order = 1}),
                  f32({1, 1, 2}, -3, 4));
  const double cubic =
      run(pooling{.mode = pooling_mode::lp, .lengths = {3}, .lp_order = 3}, f32({1, 1, 3}, -3, 4, 5)).at<double>(0);
  EXPECT_NEAR(cubic, 6.0, 1e-6);
}
TEST(pooling, padding_is_never_a_maximum) {
  KILN_EXPECT_RUN(f32({1, 1, 3}, -2, -2, -5), (pooling{.lengths = {2}, .pads = {1, 1}}), f32({1, 1, 2}, -2, -5));
  KILN_EXPECT_RUN(lit(dtype::i8, {1, 1, 3}, -2, -2, -5), (pooling{.lengths = {2}, .pads = {1, 1}}),
                  lit(dtype::i8, {1, 1, 2}, -2, -5));
  // a dilated window that lies in padding only
  KILN_EXPECT_RUN(lit(dtype::i8, {1, 1, 1}, -128), (pooling{.lengths = {2}, .dilation = {2}, .pads = {1, 1}}),
                  lit(dtype::i8, {1, 1, 1}, 7));
  KILN_EXPECT_RUN(f32({1, 1, 1}, -std::numeric_limits<float>::infinity()),
                  (pooling{.lengths = {2}, .dilation = {2}, .pads = {1, 1}}), f32({1, 1, 1}, 7));
}
TEST(pooling, a_mean_counts_padding_when_asked) {
  constexpr pooling outside{.mode = pooling_mode::average, .lengths = {3}, .stride = {2}, .pads = {1, 1}};
  KILN_EXPECT_RUN(f32({1, 1, 2}, 1.5, 3), outside, f32({1, 1, 4}, 1, 2, 3, 4));
  constexpr pooling inside{
      .mode = pooling_mode::average, .lengths = {3}, .stride = {2}, .pads = {1, 1}, .count_include_pad = true};
  KILN_EXPECT_RUN(f32({1, 1, 2}, 1, 3), inside, f32({1, 1, 4}, 1, 2, 3, 4));
}
TEST(pooling, a_partial_last_window_counts_what_lies_in_input_and_stated_padding) {
  constexpr pooling bare{
      .mode = pooling_mode::average, .lengths = {3}, .stride = {2}, .ceil_mode = true, .count_include_pad = true};
  KILN_EXPECT_RUN(f32({1, 1, 3}, 2, 4, 5.5), bare, f32({1, 1, 6}, 1, 2, 3, 4, 5, 6));
  constexpr pooling padded{.mode = pooling_mode::average,
                           .lengths = {4},
                           .stride = {3},
                           .pads = {0, 1},
                           .ceil_mode = true,
                           .count_include_pad = true};
  // the second window holds 4, 5, 1 of padding and one position beyond it
  KILN_EXPECT_RUN(f32({1, 1, 2}, 2.5, 3), padded, f32({1, 1, 5}, 1, 2, 3, 4, 5));
}
TEST(pooling, a_nan_wins_its_windows) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto found = run(pooling{.lengths = {2}}, f32({1, 1, 4}, nan, 1.0f, 2.0f, 3.0f));
  EXPECT_TRUE(std::isnan(found.at<float>(0)));
  EXPECT_EQ(found.at<float>(1), 2);
}

literal pooled(const pooling& p, const literal& input, const index& out) {
  tensor x(input), y(out);
  const std::size_t axes = out.size() - 2;
  index window;
  for (std::int64_t k : p.lengths) window.push_back(k);
  each_index(out, [&](const index& o) {
    double best = -std::numeric_limits<double>::infinity(), sum = 0, power = 0, inside = 0, counted = 0;
    each_index(window, [&](const index& k) {
      index at{o[0], o[1]};
      bool in_padding = true;
      for (std::size_t d = 0; d < axes; ++d) {
        at.push_back(o[d + 2] * (p.stride.empty() ? 1 : p.stride[d]) + k[d] * (p.dilation.empty() ? 1 : p.dilation[d]) -
                     (p.pads.empty() ? 0 : p.pads[d]));
        in_padding = in_padding && at[d + 2] < x.lens[d + 2] + (p.pads.empty() ? 0 : p.pads[axes + d]);
      }
      counted += in_padding;
      if (!x.inside(at)) return;
      ++inside;
      best = std::max(best, x(at));
      sum += x(at);
      power += std::pow(std::fabs(x(at)), static_cast<double>(p.lp_order));
    });
    y(o) = p.mode == pooling_mode::max       ? best
           : p.mode == pooling_mode::average ? (inside > 0 ? sum / (p.count_include_pad ? counted : inside) : 0)
                                             : std::pow(power, 1 / static_cast<double>(p.lp_order));
  });
  return y.as(F);
}

struct pooling_case {
  pooling op;
  dims x;
};
class pooling_values : public testing::TestWithParam<pooling_case> {};
TEST_P(pooling_values, equal_the_definition) {
  pooling op = GetParam().op;
  const literal input = whole_numbers(F, GetParam().x, -9, 9);
  for (pooling_mode mode : {pooling_mode::max, pooling_mode::average, pooling_mode::lp})
    for (bool ceil_mode : {false, true})
      for (bool include : {false, true}) {
        op.mode = mode, op.ceil_mode = ceil_mode, op.count_include_pad = include;
        const literal found = run_bytes_all(op, input)[0];
        index out;
        for (dimension d : found.get_shape().lens) out.push_back(d.value());
        const auto expected = pooled(op, input, out).to<double>(), values = found.to<double>();
        for (std::size_t i = 0; i < values.size(); ++i)
          ASSERT_NEAR(values[i], expected[i], 1e-5) << to_string(mode) << ceil_mode << include << " at " << i;
      }
}
INSTANTIATE_TEST_SUITE_P(
    , pooling_values,
    testing::Values(
        pooling_case{{.lengths = {3}}, {2, 3, 8}}, pooling_case{{.lengths = {3}, .stride = {3}}, {1, 2, 8}},
        pooling_case{{.lengths = {3}, .stride = {2}, .dilation = {2}, .pads = {2, 1}}, {2, 1, 9}},
        pooling_case{{.lengths = {2, 3}, .stride = {3, 2}, .pads = {1, 1, 0, 2}}, {1, 2, 5, 7}},
        pooling_case{{.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}}, {2, 2, 6, 7}},
        pooling_case{{.lengths = {2, 2}, .stride = {2, 1}, .dilation = {2, 3}, .pads = {1, 2, 2, 1}, .lp_order = 3},
                     {1, 2, 6, 5}},
        pooling_case{{.lengths = {2, 3, 2}, .stride = {2, 1, 2}, .pads = {1, 0, 1, 0, 2, 1}}, {1, 2, 5, 4, 5}},
        pooling_case{{.lengths = {3}, .stride = {3}, .pads = {1, 1}}, {1, 1, 2}}));

TEST(pooling, works_in_every_number_type) {
  expect_same_in(dtypes::numbers, 1, pooling{.lengths = {2, 2}, .pads = {1, 0, 0, 1}},
                 whole_numbers(dtype::f64, {1, 2, 4, 3}, 0, 9));
  expect_same_in(dtypes::floats, 1, pooling{.mode = pooling_mode::average, .lengths = {2, 2}},
                 whole_numbers(dtype::f64, {1, 2, 4, 3}, 0, 9));
}
TEST(pooling, keeps_symbolic_extents) {
  const dimension h = dimension::symbol("h", 3, 512);
  for (bool ceil_mode : {false, true}) {
    const pooling p{.lengths = {3}, .stride = {2}, .pads = {1, 1}, .ceil_mode = ceil_mode};
    const dimension out = shape_from(p, shape{F, {1, 1, h}}).lens[2];
    for (std::int64_t n = 3; n < 12; ++n) {
      bindings values;
      values.bind(h, n);
      EXPECT_EQ(values.evaluate(out), shape_from(p, shape{F, {1, 1, n}}).lens[2].value()) << n << ceil_mode;
    }
  }
}

// lrn

static_assert(shape_from(lrn{.size = 3}, shape{F, {2, 3, 4, 5}}) == shape{F, {2, 3, 4, 5}});
static_assert(shape_from(lrn{.size = 3}, shape{F, {2, 0}}) == shape{F, {2, 0}});
static_assert(fails(lrn{}, errc::invalid_argument, "number of inputs"));
static_assert(fails(lrn{}, errc::unsupported, "dtype of the operand", shape{dtype::i32, {2, 3}}));
static_assert(fails(lrn{}, errc::shape_mismatch, "an input has a batch and a channel dim", shape{F, {3}}));
static_assert(fails(lrn{.size = 0}, errc::invalid_argument, "size is positive", shape{F, {2, 3}}));

constexpr bool near(const literal& l, std::size_t i, double value) {
  const double gap = l.at<double>(i) - value;
  return gap < 1e-6 && gap > -1e-6;
}
constexpr bool odd_window() {
  const literal y = run(lrn{.size = 3, .alpha = 3, .beta = 1}, f32({1, 3}, 1, 2, 3));
  return near(y, 0, 1 / 6.) && near(y, 1, 2 / 15.) && near(y, 2, 3 / 14.);
}
static_assert(odd_window());

TEST(lrn, divides_by_the_power_of_the_channels_around) {
  EXPECT_TRUE(odd_window());
  const lrn op{.size = 4, .alpha = 0.5f, .beta = 0.75f, .bias = 2};
  const literal input = whole_numbers(F, {2, 5, 3, 2}, -5, 5);
  tensor x(input);
  const auto found = run_bytes_all(op, input)[0].to<double>();
  std::size_t i = 0;
  each_index(x.lens, [&](const index& at) {
    double sum = 0;
    for (std::int64_t c = at[1] - 1; c <= at[1] + 2; ++c)
      if (c >= 0 && c < 5) sum += std::pow(x({at[0], c, at[2], at[3]}), 2);
    EXPECT_NEAR(found[i++], x(at) / std::pow(2 + 0.5 / 4 * sum, 0.75), 1e-6);
  });
}
TEST(lrn, works_in_every_float_type) {
  expect_same_in(dtypes::floats, 1, lrn{.size = 1, .alpha = 0}, whole_numbers(dtype::f64, {1, 3, 2}, -5, 5));
}

// attention

constexpr shape q{F, {2, 4, 3, 8}}, k{F, {2, 2, 5, 8}}, v{F, {2, 2, 5, 6}};
static_assert(shape_from(attention{}, q, k, v) == shape{F, {2, 4, 3, 6}});
static_assert(shape_from(attention{}, q, k, v, shape{dtype::boolean, {2, 4, 3, 5}}) == shape{F, {2, 4, 3, 6}});
static_assert(shape_from(attention{}, q, k, v, shape{F, {1, 1, 3, 1}}) == shape{F, {2, 4, 3, 6}});
static_assert(shape_from(attention{}, shape{F, {1, 0, 3, 8}}, shape{F, {1, 0, 5, 8}}, shape{F, {1, 0, 5, 6}}) ==
              shape{F, {1, 0, 3, 6}});
static_assert(fails(attention{}, errc::invalid_argument, "number of inputs", q, k));
static_assert(fails(attention{}, errc::unsupported, "dtype of the operands", q.with(dtype::i32), k, v));
static_assert(fails(attention{}, errc::shape_mismatch, "operands have one dtype", q, k, v.with(dtype::f64)));
static_assert(fails(attention{}, errc::shape_mismatch, "operands have rank 4", q, k, shape{F, {2, 5, 6}}));
static_assert(fails(attention{}, errc::shape_mismatch, "operands have rank 4", q, k, v, shape{F, {3, 5}}));
static_assert(fails(attention{}, errc::shape_mismatch, "query, key and value have one batch extent", q, k,
                    shape{F, {1, 2, 5, 6}}));
static_assert(fails(attention{}, errc::shape_mismatch, "key and value have equal heads", q, k, shape{F, {2, 4, 5, 6}}));
static_assert(fails(attention{}, errc::shape_mismatch, "query heads are a multiple of key heads", q,
                    shape{F, {2, 3, 5, 8}}, shape{F, {2, 3, 5, 6}}));
static_assert(fails(attention{}, errc::shape_mismatch, "query heads are a multiple of key heads", q,
                    shape{F, {2, 0, 5, 8}}, shape{F, {2, 0, 5, 6}}));
static_assert(fails(attention{}, errc::shape_mismatch, "query and key have equal last extents", q,
                    shape{F, {2, 2, 5, 7}}, v));
static_assert(fails(attention{}, errc::shape_mismatch, "key and value have equal lengths", q, k,
                    shape{F, {2, 2, 4, 6}}));
static_assert(fails(attention{}, errc::shape_mismatch, "a mask is bool or of the operands' dtype", q, k, v,
                    shape{dtype::f64, {2, 4, 3, 5}}));
static_assert(fails(attention{}, errc::shape_mismatch, "a mask broadcasts to the scores", q, k, v,
                    shape{F, {2, 2, 3, 5}}));

TEST(attention, averages_the_values_by_the_softmax_of_scores) {
  // equal scores: the mean
  KILN_EXPECT_RUN(f32({1, 1, 1, 2}, 2, 3), attention{}, f32({1, 1, 1, 1}, 0), f32({1, 1, 2, 1}, 1, 5),
                  f32({1, 1, 2, 2}, 1, 2, 3, 4));
  // scores of 0 and ln 3
  const auto out = run(attention{.scale = 0.5f}, f32({1, 1, 1, 1}, 2), f32({1, 1, 2, 1}, 0.0, std::log(3.0)),
                       f32({1, 1, 2, 1}, 0, 1));
  EXPECT_NEAR(out.at<float>(0), 0.75, 1e-6);
}
TEST(attention, a_row_that_sees_nothing_is_zero) {
  const float inf = std::numeric_limits<float>::infinity();
  KILN_EXPECT_RUN(f32({1, 1, 2, 1}, 0, 2), attention{}, f32({1, 1, 2, 1}, 1, 0), f32({1, 1, 2, 1}, 1, 5),
                  f32({1, 1, 2, 1}, 1, 3), lit(dtype::boolean, {1, 1, 2, 1}, 0, 1));
  const literal hidden = f32({1, 1, 2, 2}, -inf, -inf, -inf, 0.0f);
  const literal found =
      run_bytes_all(attention{}, f32({1, 1, 2, 1}, 1, 0), f32({1, 1, 2, 1}, 1, 5), f32({1, 1, 2, 1}, 1, 3), hidden)[0];
  EXPECT_TRUE(found == f32({1, 1, 2, 1}, 0, 3));
  // no keys at all
  KILN_EXPECT_RUN(f32({1, 1, 1, 1}, 0), attention{}, f32({1, 1, 1, 1}, 1), f32({1, 1, 0, 1}), f32({1, 1, 0, 1}));
}
TEST(attention, a_large_negative_addend_swallows_the_scores) {
  KILN_EXPECT_RUN(f32({1, 1, 1, 1}, 2), attention{}, f32({1, 1, 1, 1}, 1), f32({1, 1, 2, 1}, 1, 5),
                  f32({1, 1, 2, 1}, 1, 3), f32({1, 1, 1, 1}, -1e9f));
}
TEST(attention, causal_rows_are_aligned_at_the_last_key) {
  // two queries, three keys: the first sees two of them
  KILN_EXPECT_RUN(f32({1, 1, 2, 1}, 2, 3), attention{.causal = true}, f32({1, 1, 2, 1}, 0, 0),
                  f32({1, 1, 3, 1}, 0, 0, 0), f32({1, 1, 3, 1}, 1, 3, 5));
  // three queries, two keys: the first sees none
  KILN_EXPECT_RUN(f32({1, 1, 3, 1}, 0, 1, 2), attention{.causal = true}, f32({1, 1, 3, 1}, 0, 0, 0),
                  f32({1, 1, 2, 1}, 0, 0), f32({1, 1, 2, 1}, 1, 3));
}
TEST(attention, a_nan_stays_in_its_row) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const literal found =
      run(attention{}, f32({1, 1, 2, 1}, nan, 0.0f), f32({1, 1, 2, 1}, 1, 5), f32({1, 1, 2, 1}, 1, 3));
  EXPECT_TRUE(std::isnan(found.at<float>(0)));
  EXPECT_EQ(found.at<float>(1), 2);
}

struct attention_case {
  attention op;
  dims q, k, v, mask;
  dtype mask_type;
};
class attention_values : public testing::TestWithParam<attention_case> {};
TEST_P(attention_values, equal_the_definition) {
  const auto& [op, q_lens, k_lens, v_lens, mask_lens, mask_type] = GetParam();
  const literal q_values = whole_numbers(F, q_lens, -2, 2), k_values = whole_numbers(F, k_lens, -2, 2, 2),
                v_values = whole_numbers(F, v_lens, -9, 9, 3),
                mask_values = whole_numbers(mask_type, mask_lens, 0, 1, 4);
  const bool masked = !mask_lens.empty();
  const literal found = masked ? run_bytes_all(op, q_values, k_values, v_values, mask_values)[0]
                               : run_bytes_all(op, q_values, k_values, v_values)[0];
  tensor Q(q_values), K(k_values), V(v_values), M(mask_values), Y(found);
  const std::int64_t repeat = Q.lens[1] / K.lens[1], keys = K.lens[2], queries = Q.lens[2];
  each_index({Q.lens[0], Q.lens[1], queries}, [&](const index& at) {
    std::vector<double> weight;
    double sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      double score = 0;
      for (std::int64_t c = 0; c < Q.lens[3]; ++c)
        score += Q({at[0], at[1], at[2], c}) * K({at[0], at[1] / repeat, j, c});
      score *= static_cast<double>(op.scale);
      bool seen = !op.causal || j <= at[2] + keys - queries;
      if (masked) {
        const index from[] = {{at[0], at[1], at[2], j}};
        index m = from[0];
        for (std::size_t d = 0; d < 4; ++d) m[d] = M.lens[d] == 1 ? 0 : m[d];
        if (mask_type == dtype::boolean)
          seen = seen && M(m) != 0;
        else
          score += M(m);
      }
      weight.push_back(seen ? std::exp(score) : 0);
      sum += weight.back();
    }
    for (std::int64_t e = 0; e < V.lens[3]; ++e) {
      double expected = 0;
      for (std::int64_t j = 0; j < keys; ++j)
        if (sum > 0) expected += weight[static_cast<std::size_t>(j)] / sum * V({at[0], at[1] / repeat, j, e});
      ASSERT_NEAR(Y({at[0], at[1], at[2], e}), expected, 1e-5);
    }
  });
}
INSTANTIATE_TEST_SUITE_P(
    , attention_values,
    testing::Values(
        attention_case{{.scale = 0.5f}, {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, {}, F},
        attention_case{{.scale = 0.25f, .causal = true}, {1, 4, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 70}, {}, F},
        attention_case{{.scale = 0.5f}, {2, 6, 4, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, {2, 1, 4, 5}, dtype::boolean},
        attention_case{{.scale = 0.5f}, {2, 2, 4, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, {1, 2, 1, 5}, F},
        attention_case{
            {.scale = 0.5f, .causal = true}, {1, 2, 6, 4}, {1, 1, 5, 4}, {1, 1, 5, 3}, {1, 1, 6, 5}, dtype::boolean},
        attention_case{{}, {2, 2, 1, 3}, {2, 2, 7, 3}, {2, 2, 7, 1}, {2, 2, 1, 7}, F}));

TEST(attention, works_in_every_float_type) {
  expect_same_in(dtypes::floats, 3, attention{}, whole_numbers(dtype::f64, {1, 1, 2, 2}, 0, 0),
                 whole_numbers(dtype::f64, {1, 1, 4, 2}, -2, 2), lit(dtype::f64, {1, 1, 4, 1}, 1, 2, 3, 6));
}
TEST(attention, keeps_symbolic_extents) {
  const dimension n = dimension::symbol("n", 1, 64), past = dimension::symbol("past", 0, 64);
  EXPECT_EQ(shape_from(attention{}, shape{F, {1, 4, n, 8}}, shape{F, {1, 2, n + past, 8}},
                       shape{F, {1, 2, past + n, 8}}, shape{F, {1, 1, n, past + n}}),
            (shape{F, {1, 4, n, 8}}));
}

}  // namespace
}  // namespace kiln::test
