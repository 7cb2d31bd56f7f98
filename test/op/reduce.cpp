#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "kiln/core/simd.hpp"
#include "op/run_op.hpp"

namespace kiln::test {
namespace {

constexpr shape f(dims lens) { return {dtype::f32, lens}; }
constexpr auto b = dtype::boolean;

// --- the shape rule -------------------------------------------------------------------------------------------------

static_assert(shape_from(op::reduce_sum{{1}}, f({2, 3, 4})) == f({2, 1, 4}));
static_assert(shape_from(op::reduce_sum{{-1, 0}}, f({2, 3, 4})) == f({1, 3, 1}));
static_assert(shape_from(op::reduce_sum{}, f({2, 3})) == f({1, 1}));
static_assert(shape_from(op::reduce_sum{}, f({})) == f({}));
static_assert(shape_from(op::reduce_sum{{1}}, f({2, 0})) == f({2, 1}));
static_assert(shape_from(op::reduce_max{{0}}, shape{dtype::u8, {2, 3}}) == shape{dtype::u8, {1, 3}});
static_assert(shape_from(op::reduce_all{{0}}, shape{b, {2, 3}}) == shape{b, {1, 3}});
static_assert(fails(op::reduce_sum{{2}}, errc::shape_mismatch, "a reduced axis lies within the rank", f({2, 3})));
static_assert(fails(op::reduce_sum{{-3}}, errc::shape_mismatch, "a reduced axis lies within the rank", f({2, 3})));
static_assert(fails(op::reduce_sum{}, errc::invalid_argument, "number of inputs", f({2}), f({2})));
static_assert(fails(op::reduce_sum{}, errc::unsupported, "dtype of the operand", shape{b, {2}}));
static_assert(fails(op::reduce_any{}, errc::unsupported, "dtype of the operand", f({2})));

// --- values, in constant evaluation ---------------------------------------------------------------------------------

constexpr literal six() { return f32({2, 3}, 1, -2, 3, -4, 5, 6); }

static_assert(run(op::reduce_sum{{0}}, six()) == f32({1, 3}, -3, 3, 9));
static_assert(run(op::reduce_sum{{-1}}, six()) == f32({2, 1}, 2, 7));
static_assert(run(op::reduce_sum{}, six()) == f32({1, 1}, 9));
static_assert(run(op::reduce_sum{}, f32({}, 4)) == f32({}, 4));
static_assert(run(op::reduce_mean{{1}}, f32({2, 2}, 1, 2, 3, 5)) == f32({2, 1}, 1.5, 4));
static_assert(run(op::reduce_max{{1}}, six()) == f32({2, 1}, 3, 6));
static_assert(run(op::reduce_min{{1}}, six()) == f32({2, 1}, -2, -4));
static_assert(run(op::reduce_prod{{0}}, six()) == f32({1, 3}, -4, -10, 18));
static_assert(run(op::reduce_sum_square{{1}}, six()) == f32({2, 1}, 14, 77));
static_assert(run(op::reduce_l1{{1}}, six()) == f32({2, 1}, 6, 15));
static_assert(run(op::reduce_l2{{1}}, f32({2, 2}, 3, -4, 5, 12)) == f32({2, 1}, 5, 13));
static_assert(run(op::reduce_all{{1}}, lit(b, {2, 2}, true, true, true, false)) == lit(b, {2, 1}, true, false));
static_assert(run(op::reduce_any{{1}}, lit(b, {2, 2}, false, false, true, false)) == lit(b, {2, 1}, false, true));
static_assert(run(op::reduce_max{{0}}, lit(b, {2}, false, true)) == lit(b, {1}, true));
static_assert(run(op::reduce_min{{0}}, lit(b, {2}, false, true)) == lit(b, {1}, false));

// integers: two's complement, truncating means and roots
static_assert(run(op::reduce_sum{}, lit(dtype::i8, {3}, 100, 100, 100)) == lit(dtype::i8, {1}, 44));
static_assert(run(op::reduce_prod{}, lit(dtype::u8, {2}, 16, 17)) == lit(dtype::u8, {1}, 16));
static_assert(run(op::reduce_sum{}, i64({2}, std::numeric_limits<std::int64_t>::max(), std::int64_t{1})) ==
              i64({1}, std::numeric_limits<std::int64_t>::min()));
static_assert(run(op::reduce_mean{}, i64({3}, -1, -2, -4)) == i64({1}, -2));
static_assert(run(op::reduce_l1{}, lit(dtype::i32, {2}, -3, 4)) == lit(dtype::i32, {1}, 7));
static_assert(run(op::reduce_l2{}, lit(dtype::i32, {2}, -3, 5)) == lit(dtype::i32, {1}, 5));
static_assert(run(op::reduce_max{}, lit(dtype::u64, {2}, ~std::uint64_t{0}, std::uint64_t{1})) ==
              lit(dtype::u64, {1}, ~std::uint64_t{0}));

// over nothing: the identity, as the result's own dtype has it
static_assert(run(op::reduce_sum{{0}}, f32({0, 2})) == f32({1, 2}, 0, 0));
static_assert(run(op::reduce_prod{{0}}, f32({0})) == f32({1}, 1));
static_assert(run(op::reduce_max{{0}}, f32({0})) == f32({1}, -std::numeric_limits<float>::infinity()));
static_assert(run(op::reduce_min{{0}}, lit(dtype::f64, {0})) ==
              lit(dtype::f64, {1}, std::numeric_limits<double>::infinity()));
static_assert(run(op::reduce_max{{0}}, lit(dtype::i8, {0})) == lit(dtype::i8, {1}, -128));
static_assert(run(op::reduce_min{{0}}, lit(dtype::i8, {0})) == lit(dtype::i8, {1}, 127));
static_assert(run(op::reduce_max{{0}}, lit(dtype::u16, {0})) == lit(dtype::u16, {1}, 0));
static_assert(run(op::reduce_min{{0}}, lit(dtype::u16, {0})) == lit(dtype::u16, {1}, 65535));
static_assert(run(op::reduce_max{{0}}, i64({0})) == i64({1}, std::numeric_limits<std::int64_t>::min()));
static_assert(run(op::reduce_mean{{0}}, i64({0})) == i64({1}, 0));
static_assert(run(op::reduce_all{{0}}, lit(b, {0})) == lit(b, {1}, true));
static_assert(run(op::reduce_any{{0}}, lit(b, {0})) == lit(b, {1}, false));
static_assert(run(op::reduce_max{{0}}, lit(b, {0})) == lit(b, {1}, false));
static_assert(run(op::reduce_sum{{0}}, f32({2, 0})).elements() == 0);

// --- at run time ----------------------------------------------------------------------------------------------------

TEST(reduce, the_list_names_every_header) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/include/kiln/op/reduce")) {
    ++files;
    const op_table* table = detail::find_built_in(entry.path().stem().string());
    ASSERT_NE(table, nullptr) << entry.path();
    EXPECT_EQ(table->kind, op_kind::reduction);
  }
  EXPECT_EQ(files, reduce_ops::size);
}

struct oracle {
  const char* name;
  long double start;
  long double (*step)(long double acc, long double x);
  long double (*end)(long double acc, long double n);
};
const oracle oracles[] = {
    {"reduce_sum", 0, [](auto a, auto x) { return a + x; }, [](auto a, auto) { return a; }},
    {"reduce_mean", 0, [](auto a, auto x) { return a + x; }, [](auto a, auto n) { return a / n; }},
    {"reduce_prod", 1, [](auto a, auto x) { return a * x; }, [](auto a, auto) { return a; }},
    {"reduce_max", -1e30L, [](auto a, auto x) { return std::max(a, x); }, [](auto a, auto) { return a; }},
    {"reduce_min", 1e30L, [](auto a, auto x) { return std::min(a, x); }, [](auto a, auto) { return a; }},
    {"reduce_sum_square", 0, [](auto a, auto x) { return a + x * x; }, [](auto a, auto) { return a; }},
    {"reduce_l1", 0, [](auto a, auto x) { return a + std::abs(x); }, [](auto a, auto) { return a; }},
    {"reduce_l2", 0, [](auto a, auto x) { return a + x * x; }, [](auto a, auto) { return std::sqrt(a); }},
};

// Every float op, dtype and set of axes of a rank-3 tensor against a fold in long double.
TEST(reduce, floats_match_a_fold_in_long_double) {
  const std::int64_t lens[] = {3, 4, 5};
  for (const oracle& o : oracles) {
    const op_table& table = *detail::find_built_in(o.name);
    for (const dtype t : {dtype::f64, dtype::f32, dtype::f16, dtype::bf16}) {
      small_vector<double> values(60);
      for (std::size_t i = 0; i < 60; ++i) values[i] = std::sin(static_cast<double>(i * i) + 0.5) + 0.25;
      const literal in = literal::of<double>({t, {3, 4, 5}}, values);
      const auto rounded = in.to<double>();
      for (unsigned mask = 1; mask < 8; ++mask) {
        op::reduce_sum attributes;  // all reductions have this one field
        for (unsigned d = 0; d < 3; ++d)
          if (mask >> d & 1) attributes.axes.push_back(d == 1 ? -2 : static_cast<std::int64_t>(d));
        long double expected[60];
        double count = 1;
        for (unsigned d = 0; d < 3; ++d) count *= mask >> d & 1 ? static_cast<double>(lens[d]) : 1;
        for (long double& e : expected) e = o.start;
        for (std::size_t i = 0; i < 60; ++i) {
          const std::size_t at[] = {i / 20, i / 5 % 4, i % 5};
          std::size_t k = 0;
          for (unsigned d = 0; d < 3; ++d)
            if (!(mask >> d & 1)) k = k * static_cast<std::size_t>(lens[d]) + at[d];
          expected[k] = o.step(expected[k], rounded[i]);
        }
        const literal out = run_table(table, &attributes, {in});
        const auto found = out.to<double>();
        EXPECT_EQ(static_cast<double>(found.size()) * count, 60);
        const double bound = t == dtype::f64 ? 1e-14 : t == dtype::f32 ? 1e-6 : t == dtype::f16 ? 1e-3 : 8e-3;
        for (std::size_t k = 0; k < found.size(); ++k) {
          const auto y = static_cast<double>(o.end(expected[k], count));
          EXPECT_NEAR(found[k], y, bound * std::max(1.0, std::abs(y))) << o.name << " of " << to_string(t);
        }
      }
    }
  }
}

// The three-step face that targets fold with agrees with the reference.
TEST(reduce, start_fold_finish_equal_the_reference) {
  for (const oracle& o : oracles) {
    const op_table& table = *detail::find_built_in(o.name);
    const op::reduce_sum all;
    const double values[] = {0.5, -2, 3.25, 1, -0.75, 4, 1.5};
    double acc = 0;
    table.start(&all, dtype::f64, &acc);
    table.fold(&all, dtype::f64, values, 3, &acc);
    table.fold(&all, dtype::f64, values + 3, 4, &acc);
    table.finish(&all, dtype::f64, &acc, 7);
    EXPECT_EQ(run_table(table, &all, {literal::of<double>({dtype::f64, {7}}, values)}).at<double>(0), acc) << o.name;
  }
}

TEST(reduce, an_empty_fold_has_the_dtypes_own_bounds) {
  const op::reduce_max max;
  std::int64_t acc = 0;
  const op_table& table = *detail::find_built_in("reduce_max");
  table.start(&max, dtype::i16, &acc);
  table.finish(&max, dtype::i16, &acc, 0);
  EXPECT_EQ(acc, -32768);
  EXPECT_EQ(compiled(op::reduce_max{{0}}, lit(dtype::i16, {0})), lit(dtype::i16, {1}, -32768));
  EXPECT_EQ(compiled(op::reduce_mean{{0}}, lit(dtype::i32, {0})), lit(dtype::i32, {1}, 0));
  EXPECT_TRUE(std::isnan(compiled(op::reduce_mean{{0}}, f32({0})).at<float>(0)));
}

TEST(reduce, nan_wins_wherever_it_stands) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int at = 0; at < 3; ++at) {
    float x[] = {1, 2, 3};
    x[at] = nan;
    const literal in = literal::of<float>({dtype::f32, {3}}, x);
    EXPECT_TRUE(std::isnan(compiled(op::reduce_max{}, in).at<float>(0))) << at;
    EXPECT_TRUE(std::isnan(compiled(op::reduce_min{}, in).at<float>(0))) << at;
  }
}

TEST(reduce, constant_evaluation_equals_run_time) {
  EXPECT_EQ(compiled(op::reduce_sum{{0}}, f32({2, 3}, 1, -2, 3, -4, 5, 6)), f32({1, 3}, -3, 3, 9));
  EXPECT_EQ(compiled(op::reduce_l2{{1}}, f32({1, 2}, 3, -4)), f32({1, 1}, 5));
  EXPECT_EQ(compiled(op::reduce_all{{1}}, lit(b, {2, 2}, true, true, true, false)), lit(b, {2, 1}, true, false));
  EXPECT_EQ(compiled(op::reduce_any{{1}}, lit(b, {2, 2}, false, false, true, false)), lit(b, {2, 1}, false, true));
  EXPECT_EQ(compiled(op::reduce_max{{0}}, lit(b, {0})), lit(b, {1}, false));
}

// What a vectorized reduction keeps in registers.
TEST(reduce, lanes_fold_like_scalars) {
  using V = native_vec<float>;
  V x{}, y{};
  for (int i = 0; i < lanes<V>; ++i) x[i] = static_cast<float>(i) - 1.5f, y[i] = 2.0f - static_cast<float>(2 * i);
  reduce_ops::for_each([&]<class Op>(boost::hana::basic_type<Op>) {
    if constexpr (detail::types_of<Op>().contains(dtype::f32)) {
      const Op op{};
      const auto prepared = [&](auto v) {
        if constexpr (requires { op.prepare(v); })
          return op.prepare(v);
        else
          return v;
      };
      const auto folded = [&]<class T>(T a, T c) {
        T acc = op.combine(op.combine(identity_of<T>(op), prepared(a)), prepared(c));
        if constexpr (requires { op.finish(acc, acc); }) acc = op.finish(acc, splat<T>(2));
        return acc;
      };
      const V found = folded(x, y);
      for (int i = 0; i < lanes<V>; ++i) EXPECT_EQ(found[i], folded(float(x[i]), float(y[i]))) << type_name<Op>();
    }
  });
}

TEST(reduce, sums_and_products_fold_over_symbols) {
  const dimension n = dimension::symbol("n", 1, 100);
  const literal x = symbols(n, dimension(3), n + 1);
  EXPECT_EQ(compiled(op::reduce_prod{{0}}, x), symbols(n * 3 * (n + 1)));
  EXPECT_EQ(compiled(op::reduce_sum{{0}}, x), symbols(n * 2 + 4));
  EXPECT_EQ(shape_from(op::reduce_sum{{0}}, f({n, n + 1})), f({1, n + 1}));
}

}  // namespace
}  // namespace kiln::test
