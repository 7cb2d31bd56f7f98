// Resampling and sampling at positions, thread by thread, beside the ops' own computations.
#include "kiln/backend/hip/kernels/index/sampling.hpp"

#include <gtest/gtest.h>

#include "emulated_device.hpp"
#include "kiln/op/more.hpp"
#include "reference.hpp"

namespace kiln::testing {
namespace {

using namespace kiln::gpu;

void expect_values(const std::vector<float>& found, const std::vector<double>& expected, double bound) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < found.size(); ++k) ASSERT_NEAR(static_cast<double>(found[k]), expected[k], bound) << k;
}

// Positions from the begin and from the end, and weights.
struct table {
  std::vector<std::int64_t> at;
  std::vector<float> weight;
  resampled_axis axis;
  table(i64 taps, i64 extent, i64 from, i64 step) : axis{taps, extent, from, step} {
    for (i64 i = 0; i < taps * extent; ++i)
      at.push_back(i * 5 % (2 * from) - from), weight.push_back(static_cast<float>(i % 7 - 2) / 8);
  }
  value positions(builder& b) const {
    return b.constant(literal::of<std::int64_t>({dtype::i64, {axis.taps, axis.extent}}, at));
  }
  value weights(builder& b) const {
    return b.constant(literal::of<float>({dtype::f32, {axis.taps, axis.extent}}, weight));
  }
};

// [4, 5, 6, 2] along the second and third dim; `Copies` results of the first dim and both of the last a thread.
template <int Held, int Run, int Copies> void check_resample(i64 taps) {
  constexpr i64 rows = 7, cols = 9, lines = 4, last = 2;
  const table a(taps, rows, 5, 6 * last), c(taps + 1, cols, 6, last);
  const auto [in, expected] = reference_of([&](builder& b) {
    const value x = b.input("x", dtype::f32, {lines, 5, 6, last});
    b.output(b.add(op::resample{{1, 2}}, x, a.positions(b), a.weights(b), c.positions(b), c.weights(b)));
    b.output(
        b.add(op::resample{{1, 2}, false}, x, table(1, rows, 5, 0).positions(b), table(1, cols, 6, 0).positions(b)));
  });
  std::vector<float> out(static_cast<std::size_t>(lines * rows * cols * last), 77);
  resample_sizes n{};
  n.dims[0] = {lines / Copies, Copies * 5 * 6 * last, Copies * rows * cols * last};
  n.dims[1] = {rows, 0, cols * last}, n.dims[2] = {cols, 0, last}, n.dims[3] = {last / Run, Run, Run};
  n.copy = {0, 5 * 6 * last, rows * cols * last};
  n.axes[0] = a.axis, n.axes[1] = c.axis;
  int faults = 0;
  const auto taps_in = [&](const table& t, int axis, auto held) {
    return [&t, &n, &faults, axis](const auto& p) {
      return taps_of<decltype(held)::value, float>(t.at.data(), t.weight.data(), n.axes[axis], p.place[1 + axis],
                                                   &faults);
    };
  };
  const std::integral_constant<int, Held> first;
  const std::integral_constant<int, Held == 0 ? 0 : Held + 1> second;
  for (int at = 0; at < lines / Copies * rows * cols * (last / Run); ++at)
    resample<4, Run, Copies, float>(out.data(), in[0].data(), n, at, &faults, taps_in(a, 0, first),
                                    taps_in(c, 1, second));
  expect_values(out, expected[0], 1e-5);

  const table rows1(1, rows, 5, 6 * last), cols1(1, cols, 6, last);
  n.dims[0] = {lines, 5 * 6 * last, rows * cols * last}, n.dims[3] = {last, 1, 1};
  n.axes[0] = rows1.axis, n.axes[1] = cols1.axis;
  const std::integral_constant<int, 0> none;
  for (i64 at = 0; at < lines * rows * cols * last; ++at)
    resample_nearest<4>(out.data(), in[0].data(), n, at, &faults, taps_in(rows1, 0, none), taps_in(cols1, 1, none));
  expect_values(out, expected[1], 0);
  EXPECT_EQ(faults, 0);
}
TEST(device_sampling, sums_of_taps) {
  check_resample<2, 1, 1>(2);
  check_resample<2, 2, 4>(2);
  check_resample<4, 1, 2>(4);
  check_resample<0, 2, 1>(9);
}

TEST(device_sampling, a_position_outside_is_a_fault) {
  const float x[] = {1, 2, 3};
  float out[2];
  const std::int64_t at[] = {1, 3};
  resample_sizes n{};
  n.dims[0] = {2, 0, 1}, n.axes[0] = {1, 2, 3, 1};
  for (int i = 0; i < 2; ++i) {
    int faults = 0;
    resample_nearest<1>(out, x, n, i, &faults, [&](const auto& p) {
      return taps_of<0, float>(at, static_cast<const float*>(nullptr), n.axes[0], p.place[0], &faults);
    });
    EXPECT_EQ(faults, i);
  }
}

TEST(device_sampling, sums_of_bytes_are_cut_and_saturate) {
  using byte = unsigned char;
  EXPECT_EQ((sum_as<byte>(254.9998f)), 255);
  EXPECT_EQ((sum_as<byte>(254.9f)), 254);
  EXPECT_EQ((sum_as<byte>(300.0f)), 255);
  EXPECT_EQ((sum_as<byte>(-3.0f)), 0);
  EXPECT_EQ((sum_as<signed char>(-3.9f)), -3);
  EXPECT_EQ((sum_as<signed char>(-3.9999f)), -4);
  EXPECT_EQ((sum_as<signed char>(-500.0f)), -128);
}

template <int Mode, int Padding, bool Corners, bool Normalized, int Axes> void check_grid(i64 each) {
  constexpr i64 points = 23, channels = 5;
  const i64 lens[3] = {Axes > 2 ? 3 : 1, Axes > 1 ? 4 : 1, 6};
  dims image{2, channels};
  for (int d = 3 - Axes; d < 3; ++d) image.push_back(lens[d]);
  op::grid_sample g;
  g.mode = static_cast<op::sampling_mode>(Mode), g.padding = static_cast<op::sampling_padding>(Padding);
  g.align_corners = Corners, g.normalized = Normalized;
  const auto [in, expected] = reference_of(
      [&](builder& b) {
        const value x = b.input("x", dtype::f32, image);
        b.output(b.add(g, x, b.input("grid", dtype::f32, {2, points, Axes})));
      },
      [](auto& given) {
        for (float& p : given[1]) p *= Normalized ? 1.4f : 9.0f;
      });
  std::vector<float> out(static_cast<std::size_t>(2 * channels * points), 77);
  const grid_sizes n{points, channels, (channels + each - 1) / each, each, Normalized, {lens[0], lens[1], lens[2]}};
  for (int at = 0; at < 2 * n.groups * points; ++at)
    grid_sample<sampling_rule<Mode, Padding, Corners, Normalized>, Axes>(out.data(), in[0].data(), in[1].data(), n, at);
  expect_values(out, expected[0], 1e-5);
}
template <int Mode> void check_modes() {
  check_grid<Mode, 0, false, true, 2>(8);
  check_grid<Mode, 1, true, true, 2>(2);
  check_grid<Mode, 2, false, true, 2>(1);
  check_grid<Mode, 2, true, true, 3>(4);
  check_grid<Mode, 0, true, true, 1>(4);
  check_grid<Mode, 0, false, false, 3>(2);
}
TEST(device_sampling, positions_of_a_grid) {
  check_modes<0>();
  check_modes<1>();
  check_modes<2>();
}

}  // namespace
}  // namespace kiln::testing
