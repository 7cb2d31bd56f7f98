// Determinants, inverses and Fourier transforms against the ops' own computations.
#include <gmock/gmock.h>

#include <thread>

#include "kiln/op/linear/dft.hpp"
#include "kiln/op/linear/inverse.hpp"
#include "runtime/compare.hpp"

namespace kiln::testing {
namespace {

// Makes the program, asks that Eigen's kernel serves, and compares.
void expect_eigen(const std::function<void(builder&)>& make, std::span<const argument> in, tolerance t) {
  const executable e = compile_eigen(make);
  for (const step_info& step : e.report().steps)
    EXPECT_THAT(step.kernel, ::testing::Not(::testing::HasSubstr("reference")));
  expect_same(make, in, t);
}
void expect_eigen(const std::function<void(builder&)>& make, tolerance t) {
  expect_eigen(make, random_inputs(make), t);
}

tolerance bound(dtype t, double f32, double f64) { return t == dtype::f64 ? tolerance{f64, f64} : tolerance{f32, f32}; }

TEST(squares, determinants) {
  for (const dtype t : {dtype::f32, dtype::f64})
    for (const std::int64_t n : {0, 1, 2, 3, 4, 7, 40}) {
      SCOPED_TRACE(::testing::Message() << to_string(t) << ' ' << n);
      expect_eigen(
          [&](builder& b) {
            b.output(b.input("x", t, {3, 5, n, n}) | op::det{});
            b.output(b.input("one", t, {n, n}).transpose({1, 0}) | op::det{});
          },
          bound(t, 1e-3, 1e-12));
    }
}

TEST(squares, inverses) {
  for (const dtype t : {dtype::f32, dtype::f64})
    for (const std::int64_t n : {0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 32, 33, 40, 64, 65, 70}) {
      SCOPED_TRACE(::testing::Message() << to_string(t) << ' ' << n);
      const auto make = [&](builder& b) {
        b.output(b.input("x", t, {3, 5, n, n}) | op::inverse{});
        b.output(b.input("one", t, {n, n}).transpose({1, 0}) | op::inverse{});
      };
      // far from singular: each row has a greatest element, three columns on, so that rows change places in cycles
      argument x = random_argument({t, {3, 5, n, n}}, 4);
      auto values = x.to<double>();
      for (std::int64_t k = 0; k < 15 * n; ++k)
        values[static_cast<std::size_t>(k * n + (k % n + 3) % n)] += 2.0 * static_cast<double>(n);
      encode(t, values.data(), x.data(), x.elements());
      const argument in[] = {x, n == 0 ? argument(shape{t, {n, n}}) : argument({t, {n, n}}, x.data())};
      expect_eigen(make, in, bound(t, 1e-5, 1e-13));
    }
}

TEST(squares, rows_are_exchanged) {
  const float values[] = {0, 2, 1, 0};
  const argument x = argument::of<float>({2, 2}, values);
  builder b;
  const value in = b.input("x", dtype::f32, {2, 2});
  b.output(in | op::det{});
  b.output(in | op::inverse{});
  const auto found = compile(b.finish(), eigen_target(), plain_options()).run(std::span(&x, 1));
  EXPECT_EQ(found[0].as<float>()[0], -2);
  EXPECT_THAT(found[1].as<float>(), ::testing::ElementsAre(0, 1, .5f, 0));
}

TEST(squares, singular_ones) {
  for (const dtype t : {dtype::f32, dtype::f64}) {
    const double values[] = {1, 2, 2, 4, 0, 0, 0, 0, 3, 0, 0, 5};
    argument x(shape{t, {3, 2, 2}});
    encode(t, values, x.data(), 12);
    const auto make = [&](builder& b) {
      const value in = b.input("x", t, {3, 2, 2});
      b.output(in | op::det{});
      b.output(in | op::inverse{});
    };
    expect_eigen(make, std::span(&x, 1), {1e-6, 0});
    const auto found = compile_eigen(make).run(std::span(&x, 1));
    EXPECT_THAT(found[0].to<double>(), ::testing::ElementsAre(0, 0, 15));
    const auto inverse = found[1].to<double>();
    for (std::size_t k = 0; k < 8; ++k) EXPECT_TRUE(std::isnan(inverse[k])) << k;
    EXPECT_NEAR(inverse[11], .2, 1e-7);
  }
}

// Errors grow with the logarithm of the length; sums of 4096 numbers below 1 are up to some hundreds.
tolerance fourier_bound(dtype t, std::int64_t n) {
  const double scale = std::sqrt(static_cast<double>(n));
  return t == dtype::f64 ? tolerance{1e-13, 3e-15 * scale} : tolerance{1e-5, 1.5e-6 * scale};
}

TEST(fourier, lengths_and_directions) {
  for (const dtype t : {dtype::f32, dtype::f64})
    for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 97, 194, 1000, 4096}) {
      SCOPED_TRACE(::testing::Message() << to_string(t) << ' ' << n);
      expect_eigen(
          [&](builder& b) {
            const value real = b.input("real", t, {2, n, 1}), pairs = b.input("pairs", t, {1, n, 2}),
                        half = b.input("half", t, {2, n / 2 + 1, 2});
            b.output(real | op::dft{});
            b.output(real | op::dft{.one_sided = true});
            b.output(real | op::dft{.inverse = true});
            b.output(pairs | op::dft{});
            b.output(pairs | op::dft{.inverse = true});
            b.output(half | op::dft{.inverse = true, .one_sided = true, .length = n});
          },
          fourier_bound(t, n));
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(fourier, axes_strides_and_lengths_of_their_own) {
  expect_eigen(
      [](builder& b) {
        const value x = b.input("x", dtype::f32, {3, 12, 5, 2}), real = b.input("real", dtype::f32, {3, 12, 5, 1});
        for (const std::int64_t axis : {0, 1, -2})
          for (const std::int64_t length : {0, 4, 9, 20}) {
            b.output(x | op::dft{.axis = axis, .length = length});
            b.output(real | op::dft{.axis = axis, .one_sided = true, .length = length});
            b.output(x | op::dft{.axis = axis, .inverse = true, .one_sided = true, .length = length});
          }
        b.output(x.transpose({1, 2, 0, 3}) | op::dft{.axis = 0});
        b.output(x.slice({.axes = {1}, .starts = {11}, .ends = {0}, .steps = {-2}}) | op::dft{.axis = 1});
        b.output(real.broadcast_to({3, 12, 5, 2}) | op::dft{.axis = 1});
      },
      {1e-5, 1e-5});
}

TEST(fourier, one_axis_after_another_and_back) {
  builder b;
  const value x = b.input("x", dtype::f64, {1, 30, 14, 2});
  const value spectrum = x | op::dft{.axis = 1} | op::dft{.axis = 2};
  b.output(spectrum | op::dft{.axis = 1, .inverse = true} | op::dft{.axis = 2, .inverse = true});
  const argument in = random_argument({dtype::f64, {1, 30, 14, 2}}, 5);
  expect_close(compile(b.finish(), eigen_target(), plain_options()).run(std::span(&in, 1))[0], in, {1e-13, 1e-14});
}

TEST(fourier, nothing_to_transform) {
  expect_eigen(
      [](builder& b) {
        b.output(b.input("none", dtype::f32, {0, 8, 1}) | op::dft{});
        b.output(b.input("short", dtype::f32, {2, 0, 1}) | op::dft{});
        b.output(b.input("padded", dtype::f32, {2, 0, 1}) | op::dft{.length = 4});
      },
      {});
}

TEST(fourier, lengths_of_the_run) {
  builder b;
  const dimension n = dimension::symbol("fourier_n", 1, 5000);
  const value x = b.input("x", dtype::f32, {2, n, 1});
  b.output(x | op::dft{});
  b.output(x | op::dft{.one_sided = true, .length = n + 3});
  const executable e = compile(b.finish(), eigen_target(), plain_options());
  for (const step_info& step : e.report().steps) EXPECT_EQ(step.kernel, "dft (Eigen)");
  for (const std::int64_t length : {1, 6, 7, 97, 12, 7}) {
    SCOPED_TRACE(length);
    const argument in = random_argument({dtype::f32, {2, length, 1}}, 6);
    const auto expected = reference_run(
        [&](builder& fixed) {
          const value y = fixed.input("x", dtype::f32, {2, length, 1});
          fixed.output(y | op::dft{});
          fixed.output(y | op::dft{.one_sided = true, .length = length + 3});
        },
        std::span(&in, 1));
    const auto found = e.run(std::span(&in, 1));
    for (std::size_t k = 0; k < 2; ++k) expect_close(found[k], expected[k], {1e-5, 1e-5});
  }
}

// Plans are shared: threads with workspaces of their own disturb each other in no way.
TEST(fourier, threads_share_an_executable) {
  const executable e = compile_eigen([](builder& b) {
    b.output(b.input("x", dtype::f32, {8, 97, 2}) | op::dft{.axis = 1});
  });
  const argument in = random_argument({dtype::f32, {8, 97, 2}}, 7);
  const argument expected = e.run(std::span(&in, 1))[0];
  std::vector<std::thread> threads;
  std::vector<argument> found(4);
  for (argument& f : found)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) f = e.run(std::span(&in, 1))[0];
    });
  for (std::thread& t : threads) t.join();
  for (const argument& f : found) expect_close(f, expected, {0, 0});
}

}  // namespace
}  // namespace kiln::testing
