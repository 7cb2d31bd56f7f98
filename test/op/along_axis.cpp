#include "kiln/op/index.hpp"

#include "oracle.hpp"

// Ops that choose or make values along an axis; those that move elements are in index.cpp.
namespace kiln::test {
namespace {

using namespace kiln::op;  // NOLINT: eight ops
constexpr auto F = dtype::f32, I = dtype::i64, B = dtype::boolean;

// arg_max and arg_min

static_assert(shape_from(arg_max{1}, shape{F, {2, 3, 4}}) == shape{I, {2, 1, 4}});
static_assert(shape_from(arg_min{-1}, shape{dtype::u8, {0, 3}}) == shape{I, {0, 1}});
static_assert(fails(arg_max{}, errc::invalid_argument, "number of inputs"));
static_assert(fails(arg_max{}, errc::unsupported, "dtype of the operand", shape{B, {2}}));
static_assert(fails(arg_min{}, errc::shape_mismatch, "the axis lies within the rank", shape{F, {}}));
static_assert(fails(arg_min{1}, errc::shape_mismatch, "the axis has an element to choose", shape{F, {2, 0}}));

TEST(arg_extreme, is_the_index_of_the_first_or_last_of_equals) {
  KILN_EXPECT_RUN(i64({2, 1}, 1, 0), arg_max{1}, f32({2, 3}, 1, 3, 3, 2, 1, 2));
  KILN_EXPECT_RUN(i64({2, 1}, 2, 2), (arg_max{1, true}), f32({2, 3}, 1, 3, 3, 2, 1, 2));
  KILN_EXPECT_RUN(i64({1, 3}, 0, 1, 1), arg_min{}, f32({2, 3}, 1, 3, 3, 2, 1, 2));
  KILN_EXPECT_RUN(i64({1}, 2), (arg_min{0, true}), lit(dtype::i8, {3}, -5, 2, -5));
  KILN_EXPECT_RUN(i64({1}, 1), arg_max{}, lit(dtype::u64, {2}, 1, 0x8000000000000000u));
}
TEST(arg_extreme, a_nan_counts_as_the_extreme) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const literal x = f32({4}, 1.0f, nan, 9.0f, nan);
  EXPECT_EQ(run(arg_max{}, x).at<int>(0), 1);
  EXPECT_EQ(run(arg_min{}, x).at<int>(0), 1);
  EXPECT_EQ(run(arg_max{0, true}, x).at<int>(0), 3);
}
TEST(arg_extreme, works_in_every_number_type) {
  for (std::size_t k = 0; k < dtype_count; ++k)
    if (const auto t = static_cast<dtype>(k); dtypes::numbers.contains(t)) {
      EXPECT_TRUE(run_bytes_all(arg_max{1}, lit(t, {2, 3}, 1, 3, 2, 5, 0, 1))[0] == i64({2, 1}, 1, 0));
      EXPECT_TRUE(run_bytes_all(arg_min{1}, lit(t, {2, 3}, 1, 3, 2, 5, 0, 1))[0] == i64({2, 1}, 0, 1));
    }
}

// topk

constexpr auto both = [](const shapes& s, const shape& values, const shape& indices) {
  return s.size() == 2 && s[0] == values && s[1] == indices;
};
static_assert(both(rule(topk{.k = 2, .axis = 0}, shape{F, {3, 4}}).value(), shape{F, {2, 4}}, shape{I, {2, 4}}));
static_assert(both(rule(topk{.k = 0}, shape{F, {3, 0}}).value(), shape{F, {3, 0}}, shape{I, {3, 0}}));
static_assert(fails(topk{}, errc::invalid_argument, "number of inputs"));
static_assert(fails(topk{}, errc::unsupported, "dtype of the operand", shape{B, {2}}));
static_assert(fails(topk{.axis = 1}, errc::shape_mismatch, "the axis lies within the rank", shape{F, {2}}));
static_assert(fails(topk{.k = 3}, errc::shape_mismatch, "k lies between 0 and the extent of the axis",
                    shape{F, {4, 2}}));
static_assert(fails(topk{.k = -1}, errc::shape_mismatch, "k lies between 0 and the extent of the axis",
                    shape{F, {4, 2}}));

template <class... L>
constexpr bool gives(const topk& op, const literal& values, const literal& indices, const L&... in) {
  const auto found = run_all(op, in...);
  return found[0] == values && found[1] == indices;
}
static_assert(gives(topk{.k = 3}, f32({1, 3}, 9, 7, 7), i64({1, 3}, 3, 1, 4), f32({1, 5}, 1, 7, 2, 9, 7)));
static_assert(gives(topk{.k = 3, .largest = false}, f32({3}, 1, 1, 2), i64({3}, 0, 3, 2), f32({5}, 1, 7, 2, 1, 7)));
static_assert(gives(topk{.k = 1, .axis = 0}, f32({1, 2}, 3, 2), i64({1, 2}, 1, 0), f32({2, 2}, 1, 2, 3, 0)));

TEST(topk, equals_a_stable_sort) {
  for (bool largest : {true, false})
    for (std::int64_t k : {0, 1, 2, 7, 16, 17}) {
      const literal input = whole_numbers(F, {3, 17, 2}, -6, 6, static_cast<std::uint64_t>(k + 1));
      const auto found = run_bytes_all(topk{.k = k, .axis = 1, .largest = largest, .sorted = false}, input);
      tensor x(input), values(found[0]), indices(found[1]);
      each_index({3, 2}, [&](const index& at) {
        std::vector<std::int64_t> order;
        for (std::int64_t i = 0; i < 17; ++i) order.push_back(i);
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
          const double u = x({at[0], a, at[1]}), v = x({at[0], b, at[1]});
          return largest ? u > v : u < v;
        });
        for (std::int64_t i = 0; i < k; ++i) {
          ASSERT_EQ(indices({at[0], i, at[1]}), order[static_cast<std::size_t>(i)]);
          ASSERT_EQ(values({at[0], i, at[1]}), x({at[0], order[static_cast<std::size_t>(i)], at[1]}));
        }
      });
    }
}
TEST(topk, a_nan_is_greater_than_any_number) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const literal x = f32({4}, 1.0f, nan, 9.0f, nan);
  EXPECT_TRUE(run_all(topk{.k = 4}, x)[1] == i64({4}, 1, 3, 2, 0));
  EXPECT_TRUE(run_all(topk{.k = 4, .largest = false}, x)[1] == i64({4}, 0, 2, 1, 3));
}
TEST(topk, works_in_every_number_type_and_keeps_symbols) {
  expect_same_in(dtypes::numbers, 1, topk{.k = 2}, whole_numbers(dtype::f64, {3, 5}, 0, 9));
  const dimension n = dimension::symbol("n", 1, 64), k = dimension::symbol("k", 1, 8);
  EXPECT_EQ(rule(topk{.k = k}, shape{F, {2, n}}).value()[0].lens, (dims{2, k}));
  EXPECT_FALSE(rule(topk{.k = 65}, shape{F, {2, n}}));
}

// cumsum

static_assert(shape_from(cumsum{1}, shape{F, {2, 0}}) == shape{F, {2, 0}});
static_assert(fails(cumsum{}, errc::invalid_argument, "number of inputs"));
static_assert(fails(cumsum{}, errc::unsupported, "dtype of the operand", shape{B, {2}}));
static_assert(fails(cumsum{-2}, errc::shape_mismatch, "the axis lies within the rank", shape{F, {2}}));

TEST(cumsum, runs_along_the_axis) {
  KILN_EXPECT_RUN(f32({2, 3}, 1, 3, 6, 4, 9, 15), cumsum{1}, f32({2, 3}, 1, 2, 3, 4, 5, 6));
  KILN_EXPECT_RUN(f32({2, 3}, 1, 2, 3, 5, 7, 9), cumsum{}, f32({2, 3}, 1, 2, 3, 4, 5, 6));
  KILN_EXPECT_RUN(i64({3}, 0, 1, 3), (cumsum{0, true, false}), i64({3}, 1, 2, 3));
  KILN_EXPECT_RUN(i64({3}, 6, 5, 3), (cumsum{0, false, true}), i64({3}, 1, 2, 3));
  KILN_EXPECT_RUN(i64({3}, 5, 3, 0), (cumsum{-1, true, true}), i64({3}, 1, 2, 3));
  KILN_EXPECT_RUN(lit(dtype::i8, {2}, 100, -56), cumsum{}, lit(dtype::i8, {2}, 100, 100));
}
TEST(cumsum, works_in_every_number_type_and_over_dimensions) {
  expect_same_in(dtypes::numbers, 1, cumsum{1}, whole_numbers(dtype::f64, {2, 4, 2}, 0, 9));
  const dimension n = dimension::symbol("n");
  EXPECT_TRUE(run(cumsum{}, symbols(n, 3, n)) == symbols(n, n + 3, n * 2 + 3));
}

// one_hot

static_assert(shape_from(one_hot{.depth = 4}, shape{I, {2, 3}}, shape{F, {2}}) == shape{F, {2, 3, 4}});
static_assert(shape_from(one_hot{.depth = 4, .axis = 0}, shape{I, {}}, shape{B, {2}}) == shape{B, {4}});
static_assert(shape_from(one_hot{.depth = 0, .axis = 1}, shape{I, {2, 3}}, shape{F, {2}}) == shape{F, {2, 0, 3}});
static_assert(fails(one_hot{}, errc::invalid_argument, "number of inputs", shape{I, {2}}));
static_assert(fails(one_hot{}, errc::shape_mismatch, "indices are integers", shape{F, {2}}, shape{F, {2}}));
static_assert(fails(one_hot{}, errc::shape_mismatch, "values are the off value and the on value", shape{I, {2}},
                    shape{F, {3}}));
static_assert(fails(one_hot{.depth = -1}, errc::invalid_argument, "depth is not negative", shape{I, {2}},
                    shape{F, {2}}));
static_assert(fails(one_hot{.axis = 2}, errc::shape_mismatch, "the axis lies within the rank", shape{I, {2}},
                    shape{F, {2}}));
static_assert(fails(one_hot{}, errc::limit, "the result has no more dims than a tensor may have",
                    shape{I, {1, 1, 1, 1, 1, 1, 1, 1}}, shape{F, {2}}));

TEST(one_hot, marks_indices) {
  KILN_EXPECT_RUN(f32({3, 3}, 1, 5, 1, 1, 1, 5, 1, 1, 1), one_hot{.depth = 3}, i64({3}, 1, -1, 3), f32({2}, 1, 5));
  KILN_EXPECT_RUN(f32({3, 2}, 5, 1, 1, 1, 1, 5), (one_hot{.depth = 3, .axis = 0}), lit(dtype::i32, {2}, -3, 2),
                  f32({2}, 1, 5));
  KILN_EXPECT_RUN(f32({2}, 0, 0), one_hot{.depth = 2}, i64({}, -3), f32({2}, 0, 1));
}
TEST(one_hot, works_in_every_type_and_keeps_symbols) {
  for (std::size_t k = 0; k < dtype_count; ++k) {
    const auto t = static_cast<dtype>(k);
    EXPECT_TRUE(run_bytes_all(one_hot{.depth = 2}, i64({1}, 1), lit(t, {2}, 0, 1))[0] == lit(t, {1, 2}, 0, 1));
  }
  const dimension n = dimension::symbol("n");
  EXPECT_EQ(shape_from(one_hot{.depth = n, .axis = 0}, shape{I, {n}}, shape{F, {2}}), (shape{F, {n, n}}));
}

// iota, fill

static_assert(shape_from(iota{.lens = {2, 3}, .type = F}) == shape{F, {2, 3}});
static_assert(fails(iota{.lens = {2}}, errc::invalid_argument, "number of inputs", shape{F, {2}}));
static_assert(fails(iota{.lens = {2}, .type = B}, errc::unsupported, "dtype of the result"));
static_assert(fails(iota{}, errc::shape_mismatch, "the axis lies within the rank"));
static_assert(shape_from(fill{.lens = {2, 0}, .type = B}) == shape{B, {2, 0}});
static_assert(fails(fill{.type = dtype::sequence}, errc::unsupported, "dtype of the result"));
static_assert(fails(fill{.lens = {2}}, errc::invalid_argument, "number of inputs", shape{F, {2}}));

TEST(iota, counts_along_the_axis) {
  KILN_EXPECT_RUN(i64({2, 3}, 0, 1, 2, 0, 1, 2), (iota{.lens = {2, 3}, .axis = 1}));
  KILN_EXPECT_RUN(f32({2, 3}, 0, 0, 0, 1, 1, 1), (iota{.lens = {2, 3}, .axis = -2, .type = F}));
  KILN_EXPECT_RUN(i64({0, 2}), (iota{.lens = {0, 2}}));
  for (std::size_t k = 0; k < dtype_count; ++k)
    if (const auto t = static_cast<dtype>(k); dtypes::numbers.contains(t)) {
      EXPECT_TRUE(run_bytes_all(iota{.lens = {3}, .type = t})[0] == lit(t, {3}, 0, 1, 2));
    }
}
TEST(fill, repeats_a_value) {
  KILN_EXPECT_RUN(f32({2}, 1.5, 1.5), (fill{.lens = {2}, .value = 1.5}));
  KILN_EXPECT_RUN(lit(dtype::i8, {}, -3), (fill{.value = -3, .type = dtype::i8}));
  KILN_EXPECT_RUN(lit(B, {2}, 1, 1), (fill{.lens = {2}, .value = 0.5, .type = B}));
  for (std::size_t k = 0; k < dtype_count; ++k) {
    const auto t = static_cast<dtype>(k);
    EXPECT_TRUE(run_bytes_all(fill{.lens = {2}, .value = 1, .type = t})[0] == lit(t, {2}, 1, 1));
  }
}

// tri, contiguous

static_assert(shape_from(tri{}, shape{B, {2, 0, 3}}) == shape{B, {2, 0, 3}});
static_assert(fails(tri{}, errc::invalid_argument, "number of inputs"));
static_assert(fails(tri{}, errc::shape_mismatch, "the operand holds matrices", shape{F, {3}}));
static_assert(shape_from(contiguous{}, shape{F, {2, 3}, {1, 2}}) == shape{F, {2, 3}});
static_assert(fails(contiguous{}, errc::invalid_argument, "number of inputs"));

TEST(tri, keeps_a_triangle) {
  KILN_EXPECT_RUN(i64({2, 3}, 1, 2, 3, 0, 5, 6), tri{}, i64({2, 3}, 1, 2, 3, 4, 5, 6));
  KILN_EXPECT_RUN(i64({2, 3}, 1, 0, 0, 4, 5, 0), tri{.upper = false}, i64({2, 3}, 1, 2, 3, 4, 5, 6));
  KILN_EXPECT_RUN(i64({2, 3}, 0, 0, 3, 0, 0, 0), (tri{.k = 2}), i64({2, 3}, 1, 2, 3, 4, 5, 6));
  KILN_EXPECT_RUN(i64({2, 1, 2}, 1, 0, 3, 0), (tri{.upper = false}), i64({2, 1, 2}, 1, 2, 3, 4));
  KILN_EXPECT_RUN(i64({2, 2}, 0, 0, 3, 0), (tri{.upper = false, .k = -1}), i64({2, 2}, 1, 2, 3, 4));
  KILN_EXPECT_RUN(i64({0, 2}), tri{}, i64({0, 2}));
}
TEST(tri, moves_every_type_and_dimensions) {
  expect_same_in(dtypes::all, 1, tri{}, whole_numbers(dtype::f64, {2, 3, 3}, 0, 1));
  const dimension n = dimension::symbol("n");
  const auto square = [](dimension a, dimension b, dimension c, dimension d) {
    return literal::of_dimensions({2, 2}, small_vector<dimension>{a, b, c, d});
  };
  EXPECT_TRUE(run(tri{}, square(n, n, n, 1)) == square(n, n, 0, 1));
}
TEST(contiguous, copies) {
  KILN_EXPECT_RUN(f32({2, 2}, 1, 2, 3, 4), contiguous{}, f32({2, 2}, 1, 2, 3, 4));
  KILN_EXPECT_RUN(f32({}, 5), contiguous{}, f32({}, 5));
  expect_same_in(dtypes::all, 1, contiguous{}, whole_numbers(dtype::f64, {2, 3}, 0, 1));
  const dimension n = dimension::symbol("n");
  EXPECT_TRUE(run(contiguous{}, symbols(n, 2)) == symbols(n, 2));
}

}  // namespace
}  // namespace kiln::test
