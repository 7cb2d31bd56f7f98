// What goes along an axis, through the Eigen target: the best elements, places of extremes, running sums and products.
#include <limits>

#include "kiln/op/index/arg_min.hpp"
#include "kiln/op/index/cumprod.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

constexpr dtype types[] = {dtype::f32, dtype::f64, dtype::i8,  dtype::i16, dtype::i32, dtype::i64,
                           dtype::u8,  dtype::u16, dtype::u32, dtype::u64, dtype::f16, dtype::bf16};

bool has_kernel(const std::function<void(builder&)>& make, std::string_view name) {
  const executable e = compile_eigen(make);
  for (const auto& step : e.report().steps)
    if (step.kernel == name) return true;
  return false;
}

// Elements of few values, so that many are equal; every `odd`-th a NaN where floats have one, some zeros negative.
argument few_values(const shape& s, unsigned seed, std::int64_t odd) {
  const bool is_unsigned = s.type == dtype::u8 || s.type == dtype::u16 || s.type == dtype::u32 || s.type == dtype::u64;
  argument x = random_argument(s, seed, is_unsigned ? 0 : -9, 9);
  if (!is_float(s.type)) return x;
  const auto values = x.to<double>();
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    double v = std::floor(values[static_cast<std::size_t>(i)]);
    if (v == 0 && i % 2 == 0) v = -0.0;
    if (odd > 0 && i % odd == 1)
      v = i % 2 ? std::numeric_limits<double>::quiet_NaN() : -std::numeric_limits<double>::quiet_NaN();
    if (odd > 0 && i % odd == 2) v = i % 4 ? HUGE_VAL : -HUGE_VAL;
    encode(s.type, &v, x.data() + i * static_cast<std::int64_t>(size_of(s.type)), 1);
  }
  return x;
}

void expect_top(const shape& s, std::int64_t axis, std::int64_t k, bool largest, std::int64_t odd) {
  SCOPED_TRACE(::testing::Message() << to_string(s) << " axis " << axis << " k " << k << " largest " << largest
                                    << " NaN " << odd);
  const auto make = [&](builder& b) {
    const value best = b.add(op::topk{k, axis, largest, k % 2 == 0}, small_vector<value>{b.input("x", s.type, s.lens)});
    b.output(best.result(0));
    b.output(best.result(1));
  };
  const argument in[] = {few_values(s, 7, odd)};
  expect_same(make, in, {0, 0});
  EXPECT_TRUE(has_kernel(make, "topk"));
}

TEST(top, equals_the_reference) {
  for (const dtype type : types)
    for (const dims& lens : {dims{7}, dims{3, 70}, dims{5, 37, 3}, dims{2, 19, 21}})
      for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(lens.size()); ++axis)
        for (const std::int64_t k : {0, 1, 2, 5, 17, 18, 30, 70}) {
          if (k > lens[static_cast<std::size_t>(axis)].value()) continue;
          expect_top({type, lens}, axis, k, k % 3 != 1, k == 5 ? 0 : 11);
          if (::testing::Test::HasFatalFailure()) return;
        }
}

TEST(top, of_long_rows) {
  for (const dtype type : {dtype::f32, dtype::i64, dtype::u8})
    for (const bool largest : {false, true}) {
      for (const std::int64_t k : {1, 16, 17, 300, 900}) expect_top({type, {2, 9001}}, 1, k, largest, 97);
      for (const std::int64_t k : {3, 20, 700}) expect_top({type, {70001}}, 0, k, largest, 997);  // cut into stretches
      expect_top({type, {33001, 1}}, 0, 20, largest, 0);
      expect_top({type, {40, 500}}, 1, 500, largest, 13);  // sorted by digits
      if (::testing::Test::HasFatalFailure()) return;
    }
}

// Ascending rows, in which every element is better than all before it, and descending ones.
TEST(top, of_sorted_rows) {
  for (const std::int64_t k : {4, 40})
    for (const int sign : {1, -1})
      for (const bool largest : {false, true}) {
        const auto make = [&](builder& b) {
          const value best =
              b.add(op::topk{k, 0, largest, true}, small_vector<value>{b.input("x", dtype::f32, {20000})});
          b.output(best.result(0));
          b.output(best.result(1));
        };
        argument in[] = {argument(shape{dtype::f32, {20000}})};
        for (std::size_t i = 0; i < 20000; ++i)
          in[0].as<float>()[i] = static_cast<float>(sign) * static_cast<float>(i / 3);
        expect_same(make, in, {0, 0});
      }
}

TEST(arg_extreme, of_every_type_equals_the_reference) {
  for (const dtype type : types)
    for (const dims& lens : {dims{7}, dims{300}, dims{3, 70}, dims{5, 6, 130}, dims{2, 65, 3}, dims{4, 0}, dims{40000}})
      for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(lens.size()); ++axis)
        for (const bool last : {false, true}) {
          if (lens[static_cast<std::size_t>(axis)] == dimension(0)) continue;
          SCOPED_TRACE(::testing::Message() << to_string(shape{type, lens}) << " axis " << axis << " last " << last);
          const auto make = [&](builder& b) {
            const value x = b.input("x", type, lens);
            b.output(b.add(op::arg_max{axis, last}, small_vector<value>{x}));
            b.output(b.add(op::arg_min{axis, last}, small_vector<value>{x}));
          };
          const argument in[] = {few_values({type, lens}, 5, last ? 23 : 0)};
          expect_same(make, in, {0, 0});
          EXPECT_TRUE(has_kernel(make, "arg_min"));
          if (::testing::Test::HasFatalFailure()) return;
        }
}

// Columns too few for threads to have some each: they share the rows, of which the first ones are combined before. How
// many threads there are decides who has what.
TEST(scans, by_any_number_of_threads_equal_the_reference) {
  std::vector<std::shared_ptr<thread_pool>> pools;
  for (const unsigned threads : {1U, 3U, 8U, 40U}) pools.push_back(std::make_shared<thread_pool>(threads));
  for (const dtype type : {dtype::f32, dtype::f64, dtype::i32, dtype::u8})
    for (const dims& lens : {dims{700, 69}, dims{1, 4001, 17}, dims{3, 331, 199}, dims{2, 23, 4100}, dims{100, 3000},
                             dims{100, 4097}, dims{100, 5000}, dims{13, 4000}})
      for (const bool product : {false, true})
        for (const bool exclusive : {false, true})
          for (const bool reverse : {false, true}) {
            SCOPED_TRACE(::testing::Message() << to_string(shape{type, lens}) << " exclusive " << exclusive
                                              << " reverse " << reverse << " product " << product);
            const auto make = [&](builder& b) {
              const auto axis = static_cast<std::int64_t>(lens.size()) - 2;
              const value x = b.input("x", type, lens);
              b.output(product ? b.add(op::cumprod{axis, exclusive, reverse}, small_vector<value>{x})
                               : b.add(op::cumsum{axis, exclusive, reverse}, small_vector<value>{x}));
            };
            // products that neither vanish nor overflow: of odd integers, which wrap, or of floats next to 1
            const bool near_one = product && is_float(type);
            argument in[] = {random_argument({type, lens}, 5, near_one ? .95 : -9, near_one ? 1.05 : 9)};
            for (std::int64_t i = 0; product && !near_one && i < in[0].elements(); ++i)
              in[0].data()[i * static_cast<std::int64_t>(size_of(type))] |= std::byte(1);
            const auto expected = reference_run(make, in);
            const double close = type == dtype::f64 ? 1e-11 : type == dtype::f32 ? 1e-6 : 0;
            for (const auto& pool : pools) {
              SCOPED_TRACE(::testing::Message() << pool->size() << " threads");
              compile_options o = plain_options();
              o.pool = pool;
              expect_close(compile_eigen(make, o).run(in)[0], expected[0],
                           {close, type == dtype::f64   ? 1e-9
                                   : type == dtype::f32 ? 1e-5
                                                        : 0});
              if (::testing::Test::HasFatalFailure()) return;
            }
          }
}

// The sum of 0 and -0 is 0, in the first row, too; the product of 1 and -0 stays -0.
TEST(scans, of_negative_zeros_have_the_signs_of_the_reference) {
  for (const dtype type : {dtype::f32, dtype::f64})
    for (const std::int64_t columns : {1, 7, 8, 9, 40})
      for (const bool exclusive : {false, true}) {
        SCOPED_TRACE(::testing::Message() << to_string(type) << ' ' << columns << " columns, exclusive " << exclusive);
        const auto make = [&](builder& b) {
          const value x = b.input("x", type, {5, columns});
          b.output(b.add(op::cumsum{0, exclusive, false}, small_vector<value>{x}));
          b.output(b.add(op::cumprod{0, exclusive, false}, small_vector<value>{x}));
        };
        const std::vector<double> zeros(static_cast<std::size_t>(5 * columns), -0.);
        const argument in[] = {argument(literal::of<double>({type, {5, columns}}, zeros))};
        const auto expected = reference_run(make, in), found = compile_eigen(make).run(in);
        for (std::size_t k = 0; k < 2; ++k) {
          const auto a = found[k].to<double>(), b = expected[k].to<double>();
          for (std::size_t i = 0; i < a.size(); ++i) {
            ASSERT_EQ(a[i], b[i]) << k << ' ' << i;
            ASSERT_EQ(std::signbit(a[i]), std::signbit(b[i])) << k << ' ' << i;
          }
        }
      }
}

// Floats are accumulated in double there and here, in another order: results are a rounding apart.
TEST(scans, equal_the_reference) {
  for (const dtype type : types)
    for (const dims& lens :
         {dims{5}, dims{70001}, dims{3, 70}, dims{3, 21, 33}, dims{2, 5, 300}, dims{2, 0, 3}, dims{0}})
      for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(lens.size()); ++axis)
        for (const bool exclusive : {false, true})
          for (const bool reverse : {false, true})
            for (const bool product : {false, true}) {
              if (lens[0] == dimension(70001) && (product || type == dtype::f16 || type == dtype::bf16)) continue;
              SCOPED_TRACE(::testing::Message() << to_string(shape{type, lens}) << " axis " << axis << " exclusive "
                                                << exclusive << " reverse " << reverse << " product " << product);
              const auto make = [&](builder& b) {
                const value x = b.input("x", type, lens);
                b.output(product ? b.add(op::cumprod{axis, exclusive, reverse}, small_vector<value>{x})
                                 : b.add(op::cumsum{axis, exclusive, reverse}, small_vector<value>{x}));
              };
              const argument in[] = {random_argument({type, lens}, 5, product ? 0.5 : -9, product ? 1.5 : 9)};
              const double close = type == dtype::f64 ? 1e-12 : type == dtype::f32 ? 1e-6 : 0;
              expect_same(make, in, {close, type == dtype::f64 ? 1e-9 : type == dtype::f32 ? 1e-5 : 0});
              EXPECT_TRUE(has_kernel(make, product ? "cumprod" : "cumsum"));
              if (::testing::Test::HasFatalFailure()) return;
            }
}

}  // namespace
}  // namespace kiln::testing
