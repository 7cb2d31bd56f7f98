// Pooling and local response normalization through the Eigen target.
#include <gmock/gmock.h>

#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

using mode = op::pooling_mode;

const struct {
  dims x;
  op::pooling attributes;
} cases[] = {
    {{2, 3, 8, 9}, {.lengths = {2, 2}, .stride = {2, 2}}},
    {{1, 5, 11, 10}, {.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}}},
    {{1, 5, 11, 10}, {.lengths = {3, 2}, .stride = {2, 3}, .pads = {0, 1, 2, 0}, .ceil_mode = true}},
    {{1, 2, 7, 7}, {.lengths = {3, 3}, .stride = {3, 3}, .ceil_mode = true}},
    {{1, 4, 9, 9}, {.lengths = {3, 3}, .dilation = {2, 3}, .pads = {2, 2, 2, 2}}},
    {{1, 4, 6, 6}, {.lengths = {5, 5}, .pads = {4, 4, 4, 4}}},
    {{3, 7, 5, 5}, {.lengths = {5, 5}}},
    {{1, 70, 33, 17}, {.lengths = {33, 17}}},
    {{1, 3, 1, 1}, {.lengths = {1, 1}}},
    {{2, 3, 20}, {.lengths = {4}, .stride = {3}, .pads = {1, 2}}},
    {{1, 2, 5, 6, 7}, {.lengths = {2, 3, 2}, .stride = {2, 1, 2}, .pads = {1, 1, 0, 1, 1, 1}}},
    {{0, 2, 4, 4}, {.lengths = {2, 2}}},
    {{300, 8, 4, 4}, {.lengths = {2, 2}, .stride = {2, 2}}},
    {{2, 3, 9, 49}, {.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 0, 0}}},
    {{1, 3, 6, 65}, {.lengths = {3, 3}, .stride = {1, 2}, .pads = {2, 2, 2, 2}}},
    {{1, 3, 34, 32}, {.lengths = {3, 3}, .pads = {1, 1, 1, 1}}},
    {{1, 2, 5, 50}, {.lengths = {2, 2}, .stride = {3, 1}, .pads = {0, 1, 1, 0}}},
    {{1, 2, 7, 66}, {.lengths = {2, 2}, .stride = {2, 2}, .ceil_mode = true}},
    {{1, 1, 3, 1100}, {.lengths = {3, 3}, .stride = {1, 2}, .pads = {0, 1, 0, 1}}},
    {{1, 1, 1, 1}, {.lengths = {3, 3}, .stride = {2, 2}, .pads = {1, 1, 1, 1}}},
    {{1, 2, 1, 6, 6}, {.lengths = {1, 2, 2}, .stride = {2, 1, 1}, .pads = {1, 0, 0, 0, 0, 0}}},
    // one row to a window, read where it lies
    {{1, 2, 3, 70}, {.lengths = {1, 3}}},
    {{1, 2, 3, 71}, {.lengths = {1, 4}, .stride = {1, 2}}},
    {{1, 3, 8, 43}, {.lengths = {1, 1}, .stride = {8, 8}}},
    {{1, 2, 9, 5}, {.lengths = {2, 2}, .dilation = {9, 1}, .pads = {4, 0, 5, 0}}},
    {{1, 1, 4200}, {.lengths = {5}, .dilation = {3}, .pads = {2, 1}}},
    {{1, 1, 4200}, {.lengths = {2500}, .stride = {7}}},
    // parts of rows
    {{1, 1, 3, 4500}, {.lengths = {2, 3}, .pads = {1, 1, 1, 1}}},
    {{1, 1, 4, 4500}, {.lengths = {3, 3}, .stride = {1, 3}, .pads = {0, 2, 0, 2}}},
};

// Calls `same(lens, op)` for every case, mode and way to count.
template <class Same> void each_case(Same&& same) {
  std::size_t at = 0;
  for (const auto& [x, attributes] : cases) {
    for (const mode m : {mode::max, mode::average, mode::lp})
      for (const bool count : {false, true}) {
        SCOPED_TRACE(::testing::Message() << "case " << at << ' ' << to_string(m) << ' ' << count);
        op::pooling op = attributes;
        op.mode = m;
        op.count_include_pad = count;
        same(x, op);
        if (::testing::Test::HasFatalFailure()) return;
      }
    ++at;
  }
}

// The input [n, spatial..., c] as an image [n, c, spatial...].
value channels_first(const value& x, std::size_t rank) {
  ints order{0, static_cast<std::int64_t>(rank) - 1};
  for (std::size_t d = 1; d + 1 < rank; ++d) order.push_back(static_cast<std::int64_t>(d));
  return x.transpose(order);
}

TEST(pooling, equals_the_reference) {
  each_case([](const dims& lens, const op::pooling& op) {
    const auto make = [&](builder& b) { b.output(b.input("x", dtype::f32, lens).pool(op)); };
    expect_same(make, {1e-5, 1e-6});
    EXPECT_FALSE(compile_eigen(make).report().steps[0].fallback);
    if (op.mode == mode::lp) return;
    const auto doubles = [&](builder& b) { b.output(b.input("x", dtype::f64, lens).pool(op)); };
    expect_same(doubles, {0, 0});
    EXPECT_FALSE(compile_eigen(doubles).report().steps[0].fallback);
  });
}

TEST(pooling, norms_of_every_order) {
  for (const std::int64_t order : {1, 2, 3, 4, 7})
    for (const std::int64_t width : {5, 2500})  // rows longer than a line, too
      expect_same(
          [&](builder& b) {
            const op::pooling op{
                .mode = mode::lp, .lengths = {2, 5}, .stride = {1, 2}, .pads = {1, 1, 0, 3}, .lp_order = order};
            b.output(b.input("x", dtype::f32, {2, 3, 4, width}).pool(op));
          },
          {1e-5, 1e-6});
}

TEST(pooling, of_nhwc_equals_the_reference) {
  for (const std::int64_t channels : {3, 16, 37, 64, 150})
    each_case([&](const dims& lens, const op::pooling& op) {
      if (op.mode == mode::lp || lens[0].value() > 2) return;
      SCOPED_TRACE(channels);
      const auto make = [&](builder& b) {
        dims nhwc{lens[0]};
        for (std::size_t d = 2; d < lens.size(); ++d) nhwc.push_back(lens[d]);
        nhwc.push_back(channels);
        b.output(channels_first(b.input("x", dtype::f32, nhwc), nhwc.size()).pool(op));
      };
      expect_same(make, {1e-6, 1e-6});
      for (const step_info& s : compile_eigen(make).report().steps) EXPECT_FALSE(s.copy);
    });
}

// Means of equal elements whose sums are exact are those elements, whatever a window counts: 1 / n times n is not 1 for
// n = 41, 47, 55, nor a third of a third times 9.
TEST(pooling, means_round_as_quotients) {
  const auto check = [](const op::pooling& op, const dims& lens, bool nhwc) {
    argument x(shape{dtype::f32, lens});
    std::fill(x.as<float>().begin(), x.as<float>().end(), 1.0F);
    const auto make = [&](builder& b) {
      const value in = b.input("x", dtype::f32, lens);
      b.output((nhwc ? channels_first(in, lens.size()) : in).pool(op));
    };
    for (const float mean : compile_eigen(make).run(std::vector<argument>{x}).at(0).to<float>()) ASSERT_EQ(mean, 1.0F);
  };
  for (const bool nhwc : {false, true})
    for (std::int64_t count = 1; count <= 128; ++count) {
      SCOPED_TRACE(::testing::Message() << nhwc << ' ' << count);
      const dims line = nhwc ? dims{1, 150, 20} : dims{1, 20, 150};
      check({.mode = mode::average, .lengths = {count}}, line, nhwc);
      check({.mode = mode::average, .lengths = {count}, .pads = {count / 2, count / 2}}, line, nhwc);
    }
  for (const bool nhwc : {false, true})
    for (const std::int64_t length : {2, 3, 5, 7})
      for (const std::int64_t stride : {1, 2})
        for (const std::int64_t pad : {0, 1}) {
          SCOPED_TRACE(::testing::Message() << nhwc << ' ' << length << ' ' << stride << ' ' << pad);
          const op::pooling op{.mode = mode::average,
                               .lengths = {length, length},
                               .stride = {stride, stride},
                               .pads = {pad, pad, pad, pad}};
          check(op, nhwc ? dims{1, 19, 40, 85} : dims{1, 85, 19, 40}, nhwc);
        }
}

template <class T> void expect_special_values(dtype type) {
  SCOPED_TRACE(to_string(type));
  const T inf = std::numeric_limits<T>::infinity();
  for (const dims& lengths : {dims{2, 2}, dims{3, 3}, dims{2, 3}, dims{4, 18}, dims{1, 3}}) {
    argument x = random_argument({type, {1, 3, 4, 18}}, 3);
    const auto values = x.as<T>();
    values[5] = std::numeric_limits<T>::quiet_NaN(), values[40] = inf, values[41] = -inf, values[100] = -inf;
    for (std::size_t i = 144; i < 216; ++i) values[i] = -inf;
    for (const mode m : {mode::max, mode::average}) {
      SCOPED_TRACE(to_string(m));
      const auto make = [&](builder& b) {
        op::pooling op{.mode = m};
        for (dimension d : lengths) op.lengths.push_back(d.value());
        b.output(b.input("x", type, {1, 3, 4, 18}).pool(op));
      };
      expect_same(make, std::vector<argument>{x}, {1e-5, 1e-6});
    }
  }
}

TEST(pooling, special_values_pass_as_in_the_reference) {
  expect_special_values<float>(dtype::f32);
  expect_special_values<double>(dtype::f64);
}

// Rows of 512 KiB, whose copies each thread would have had.
TEST(pooling, doubles_need_no_memory_of_a_thread) {
  const shape x{dtype::f64, {1, 1, 2, 65536}};
  for (const mode m : {mode::max, mode::average}) {
    const auto bytes = [&](unsigned threads) {
      compile_options o = plain_options();
      o.pool = std::make_shared<thread_pool>(threads);
      const auto make = [&](builder& b) {
        b.output(b.input("x", x.type, x.lens).pool({.mode = m, .lengths = {2, 3}}));
      };
      const executable e = compile_eigen(make, o);
      workspace w;
      e.bind(w, {&x, 1});
      return w.bytes();
    };
    EXPECT_EQ(bytes(6), bytes(1)) << to_string(m);
  }
}

TEST(pooling, special_values_in_nhwc) {
  const float inf = std::numeric_limits<float>::infinity();
  argument x = random_argument({dtype::f32, {1, 6, 5, 70}}, 3);
  const auto values = x.as<float>();
  for (std::size_t i = 1050; i < 2100; ++i) values[i] = -inf;
  for (std::size_t i = 0; i < 2100; i += 97) values[i] = std::nanf("");
  for (std::size_t i = 20; i < 1050; i += 131) values[i] = inf;
  for (const dims& lengths : {dims{2, 2}, dims{3, 3}, dims{2, 3}, dims{4, 5}})
    for (const std::int64_t stride : {1, 2})
      for (const mode m : {mode::max, mode::average}) {
        SCOPED_TRACE(::testing::Message() << to_string(m) << stride);
        op::pooling op{.mode = m, .stride = {stride, stride}};
        for (dimension d : lengths) op.lengths.push_back(d.value());
        const auto make = [&](builder& b) {
          b.output(channels_first(b.input("x", dtype::f32, {1, 6, 5, 70}), 4).pool(op));
        };
        expect_same(make, std::vector<argument>{x}, {1e-5, 1e-6});
      }
}

TEST(pooling, views_are_copied_first_and_other_dtypes_run_through_the_reference) {
  expect_same(
      [](builder& b) {
        b.output(b.input("x", dtype::f32, {1, 8, 9, 3}).transpose({0, 3, 1, 2}).pool({.lengths = {3, 3}}));
        b.output(b.input("y", dtype::i8, {1, 3, 6, 6}).pool({.lengths = {2, 2}}));
        b.output(b.input("z", dtype::f16, {1, 3, 6, 6}).pool({.mode = mode::average, .lengths = {2, 2}}));
      },
      {1e-3, 1e-5});
}

TEST(lrn, equals_the_reference) {
  for (const std::int64_t size : {1, 2, 3, 5, 8})
    for (const float beta : {0.75f, 0.5f, 1.1f})
      for (const dims& lens : {dims{2, 7, 5, 3}, dims{1, 1, 4}, dims{3, 6}, dims{1, 20, 13, 13}, dims{1, 3, 0, 2}}) {
        SCOPED_TRACE(::testing::Message() << size << ' ' << beta << ' ' << lens.size());
        const auto make = [&](builder& b) {
          b.output(
              b.add(op::lrn{.size = size, .alpha = 0.3f, .beta = beta, .bias = 1.5f}, b.input("x", dtype::f32, lens)));
        };
        expect_same(make, random_inputs(make, 2, -3, 3), {1e-5, 1e-6});
        if (::testing::Test::HasFatalFailure()) return;
      }
}

TEST(lrn, sums_that_no_power_series_serves) {
  for (const auto& [beta, pixels] : {std::pair(0.75f, 8), std::pair(0.75f, 64), std::pair(0.5f, 8)})
    for (const float bias : {0.0f, 1.0f}) {
      SCOPED_TRACE(::testing::Message() << beta << ' ' << bias << ' ' << pixels);
      const auto make = [&, beta = beta, pixels = pixels](builder& b) {
        b.output(b.add(op::lrn{.size = 1, .alpha = 1, .beta = beta, .bias = bias},
                       b.input("x", dtype::f32, {1, 1, pixels})));
      };
      std::vector<argument> in = random_inputs(make, 2, -3, 3);
      const float odd[] = {0, 1e-15f, 3e4f, std::numeric_limits<float>::infinity(), std::nanf(""), 1e-10f, 1e9f, 1};
      std::copy(std::begin(odd), std::end(odd), in[0].as<float>().end() - 8);
      expect_same(make, in, {1e-5, 1e-6});
    }
}

}  // namespace
}  // namespace kiln::testing
