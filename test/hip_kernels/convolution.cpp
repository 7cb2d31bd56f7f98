// Images as factors of products, forwards and backwards, and convolutions of a channel each, lane by lane.
#include <gtest/gtest.h>

#include <array>

#include "emulated_device.hpp"
#include "kiln/backend/hip/kernels/atom/atom_fma.hpp"
#include "kiln/backend/hip/kernels/conv/grouped.hpp"
#include "kiln/backend/hip/kernels/conv/image_operand.hpp"
#include "kiln/backend/hip/kernels/conv/phases.hpp"
#include "kiln/backend/hip/kernels/gemm/gemm.hpp"

namespace kiln::testing {
namespace {

using namespace kiln::gpu;

template <class Place> struct stores_to {
  static constexpr int width = 1;
  static constexpr bool along_rows = false;
  static constexpr int expected = 0;
  Place place;
  template <int V> struct operands {};
  template <int V> void read(operands<V>&, const position&, int) const {}
  template <class S, int V> void apply(S (&v)[V], const operands<V>&, const position& p, int count) const {
    write_run<along_rows>(place, v, p, count);
  }
};

using stores = stores_to<result_place<float, true>>;

struct sizes {
  int batch, channels, filters;
  int in[3], out[3];
  int stride[3], dilation[3], pad[3];
};
constexpr int planes = 2, rows = 3, cols = 2;  // of the kernel

int place_in(const int (&extent)[3], const int (&at)[3]) { return (at[0] * extent[1] + at[1]) * extent[2] + at[2]; }

// A convolution by its definition: a window forwards gathers, one backwards scatters. `weight(filter, tap, channel)`.
template <class Weight>
std::vector<double> by_definition(const sizes& z, bool backwards, const int (&kernel)[3], const int (&stride)[3],
                                  const std::vector<float>& x, const Weight& weight) {
  const int in = z.in[0] * z.in[1] * z.in[2], pixels = z.out[0] * z.out[1] * z.out[2];
  std::vector<double> expected(static_cast<std::size_t>(z.batch * z.filters * pixels), 0);
  const auto each = [](const int(&extent)[3], auto&& f) {
    for (int p = 0; p < extent[0]; ++p)
      for (int r = 0; r < extent[1]; ++r)
        for (int c = 0; c < extent[2]; ++c) {
          const int at[3] = {p, r, c};
          f(at);
        }
  };
  const auto& from = backwards ? z.in : z.out;
  const auto& to = backwards ? z.out : z.in;
  for (int n = 0; n < z.batch; ++n)
    for (int f = 0; f < z.filters; ++f)
      each(from, [&](const int(&p)[3]) {
        each(kernel, [&](const int(&k)[3]) {
          int q[3];
          bool inside = true;
          for (int d = 0; d < 3; ++d) {
            q[d] = p[d] * stride[d] + k[d] * z.dilation[d] - z.pad[d];
            inside = inside && q[d] >= 0 && q[d] < to[d];
          }
          if (!inside) return;
          const int image = backwards ? place_in(z.in, p) : place_in(z.in, q),
                    out = backwards ? place_in(z.out, q) : place_in(z.out, p);
          for (int c = 0; c < z.channels; ++c)
            expected[static_cast<std::size_t>((n * z.filters + f) * pixels + out)] +=
                double{x[static_cast<std::size_t>((n * in + image) * z.channels + c)]} *
                double{weight(f, place_in(kernel, k), c)};
        });
      });
  return expected;
}

// Images in NHWC, weights [filters, channels / Together, taps, Together].
template <bool Backwards, int StridePlanes, int StrideRows, int StrideCols, int channels = 3, int Together = channels>
void check(const sizes& z) {
  constexpr int taps = planes * rows * cols;
  const int in = z.in[0] * z.in[1] * z.in[2], pixels = z.out[0] * z.out[1] * z.out[2];
  const auto x = random_values<float>(static_cast<std::size_t>(z.batch * in * channels), 1),
             w = random_values<float>(static_cast<std::size_t>(z.filters * taps * channels), 2);
  std::vector<float> y(static_cast<std::size_t>(z.batch * z.filters * pixels), 77);
  using places = image_places<planes, Backwards, StridePlanes, StrideRows, StrideCols>;
  using A = image_operand<float, true, Together, 1, channels, rows, cols, places>;
  using B = matrix_operand<float, true, 1>;
  A a{};
  a.base = x.data(), a.image_step = i64{in} * channels, a.channel_step = 1;
  a.plane_step = i64{z.in[1]} * z.in[2] * channels, a.row_step = i64{z.in[2]} * channels, a.col_step = channels;
  a.planes = z.in[0], a.height = z.in[1], a.width = z.in[2];
  a.out_rows = z.out[1], a.out_cols = z.out[2], a.out_pixels = pixels;
  a.stride_planes = StridePlanes, a.stride_rows = StrideRows, a.stride_cols = StrideCols;
  a.dilation_planes = z.dilation[0], a.dilation_rows = z.dilation[1], a.dilation_cols = z.dilation[2];
  a.pad_planes = z.pad[0], a.pad_rows = z.pad[1], a.pad_cols = z.pad[2];
  const B b{{w.data(), {0, 0}, taps * channels, 1}};
  const stores result{{{y.data(), {i64{z.filters} * pixels, 0, 1, pixels}, pixels}}};
  using tile = block_tile<32, 32, 32, 2, 1, 2>;
  using atom = atom_fma<float>;
  const int tiles_m = (z.batch * pixels + 31) / 32, tiles_n = (z.filters + 31) / 32;
  const gemm_sizes s{z.batch * pixels, z.filters, taps * channels, tiles_m, tiles_n, 1, 1, nullptr, nullptr};
  run_grid(tiles_m * tiles_n, 1, 64, memory_of_gemm<atom, tile, A, B>.bytes(),
           [&](char* shared) { gemm<atom, tile>(a, b, result, s, shared); });

  constexpr int kernel[3] = {planes, rows, cols}, stride[3] = {StridePlanes, StrideRows, StrideCols};
  const auto expected = by_definition(z, Backwards, kernel, stride, x, [&](int f, int tap, int c) {
    return w[static_cast<std::size_t>(f * taps * channels + (c / Together * taps + tap) * Together + c % Together)];
  });
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(static_cast<double>(y[i]), expected[i], 1e-4) << i;
}

TEST(device_convolution, volumes) {
  check<false, 1, 1, 1>({2, 3, 5, {3, 4, 5}, {2, 4, 4}, {}, {1, 1, 1}, {0, 1, 0}});
  check<false, 2, 1, 3>({1, 3, 4, {5, 6, 7}, {3, 4, 3}, {}, {1, 2, 1}, {1, 1, 1}});
}

// A step of the depth is 32 channels.
TEST(device_convolution, some_channels_are_together) {
  check<false, 1, 1, 1, 64, 32>({1, 64, 5, {2, 4, 3}, {1, 4, 2}, {}, {1, 1, 1}, {0, 1, 0}});
  check<false, 2, 1, 3, 96, 48>({1, 96, 4, {5, 4, 4}, {2, 3, 2}, {}, {1, 1, 1}, {0, 1, 1}});
  check<false, 1, 1, 1, 6, 2>({2, 6, 5, {2, 4, 3}, {1, 4, 2}, {}, {1, 1, 1}, {0, 1, 0}});
  check<false, 1, 2, 1, 5, 1>({1, 5, 3, {2, 4, 3}, {1, 2, 2}, {}, {1, 1, 1}, {0, 1, 0}});
  check<true, 1, 1, 1, 64, 64>({1, 64, 5, {2, 3, 3}, {3, 5, 4}, {}, {1, 1, 1}, {0, 0, 0}});
}

TEST(device_convolution, backwards) {
  check<true, 1, 1, 1>({2, 3, 5, {2, 3, 3}, {3, 5, 4}, {}, {1, 1, 1}, {0, 0, 0}});
  check<true, 2, 3, 2>({1, 3, 35, {2, 3, 2}, {3, 8, 4}, {}, {1, 1, 2}, {1, 0, 1}});
}

// All phases of a transposed convolution as the batch of one product, with and without splits of its depth.
template <phase_shape Shape> void check_phases(const sizes& z) {
  constexpr int channels = 3, taps = Shape.taps();
  const auto most = [](const phase_dim& d, int of) { return (of + d.stride - 1) / d.stride; };
  const int in = z.in[0] * z.in[1] * z.in[2], pixels = z.out[0] * z.out[1] * z.out[2];
  const auto x = random_values<float>(static_cast<std::size_t>(z.batch * in * channels), 1),
             given = random_values<float>(static_cast<std::size_t>(z.filters * taps * channels), 2);
  // the taps of a phase together
  std::vector<int> order;
  const int kernel[3] = {Shape.planes.taps, Shape.rows.taps, Shape.cols.taps},
            stride[3] = {Shape.planes.stride, Shape.rows.stride, Shape.cols.stride};
  for (int number = 0; number < Shape.phases(); ++number) {
    const auto n = Shape.of(number);
    for (int p = n.planes; p < kernel[0]; p += stride[0])
      for (int r = n.rows; r < kernel[1]; r += stride[1])
        for (int c = n.cols; c < kernel[2]; c += stride[2]) {
          const int at[3] = {p, r, c};
          order.push_back(place_in(kernel, at));
        }
  }
  std::vector<float> w;
  for (int f = 0; f < z.filters; ++f)
    for (const int tap : order)
      for (int c = 0; c < channels; ++c) w.push_back(given[static_cast<std::size_t>((f * taps + tap) * channels + c)]);

  constexpr int most_planes = (Shape.planes.taps + Shape.planes.stride - 1) / Shape.planes.stride,
                most_rows = (Shape.rows.taps + Shape.rows.stride - 1) / Shape.rows.stride,
                most_cols = (Shape.cols.taps + Shape.cols.stride - 1) / Shape.cols.stride;
  using A = image_operand<float, true, channels, 1, channels, most_rows, most_cols,
                          image_places<most_planes, true, 1, 1, 1, !Shape.even()>>;
  using B = matrix_operand<float, true, 1>;
  A image{};
  image.base = x.data(), image.image_step = i64{in} * channels, image.channel_step = 1, image.images = z.batch;
  image.plane_step = i64{z.in[1]} * z.in[2] * channels, image.row_step = i64{z.in[2]} * channels;
  image.col_step = channels, image.planes = z.in[0], image.height = z.in[1], image.width = z.in[2];
  image.stride_planes = image.stride_rows = image.stride_cols = 1;
  image.dilation_planes = image.dilation_rows = image.dilation_cols = 1;
  using tile = block_tile<32, 32, 32, 2, 1, 2>;
  using atom = atom_fma<float>;
  const int all = z.batch * most(Shape.planes, z.out[0]) * most(Shape.rows, z.out[1]) * most(Shape.cols, z.out[2]);
  const int tiles_m = (all + 31) / 32, tiles_n = (z.filters + 31) / 32, blocks = tiles_m * tiles_n * Shape.phases();
  const auto expected = by_definition(z, true, kernel, stride, x, [&](int f, int tap, int c) {
    return given[static_cast<std::size_t>((f * taps + tap) * channels + c)];
  });
  for (const int splits : {1, 2}) {
    std::vector<float> y(static_cast<std::size_t>(z.batch * z.filters * pixels), 77),
        partial(static_cast<std::size_t>(blocks * splits * 32 * 32), 77);
    std::vector<int> arrivals(static_cast<std::size_t>(blocks), 0);
    stores_to<phase_place<float>> to{};
    to.place.base = y.data(), to.place.channels = channels;
    to.place.step[0] = 1, to.place.step[2] = Shape.cols.stride, to.place.step[3] = pixels;
    to.place.plane_step = z.out[1] * z.out[2], to.place.row_step = z.out[2];
    to.place.image_lines = z.filters * pixels, to.place.plane_lines = Shape.planes.stride * z.out[1] * z.out[2];
    to.place.row_lines = Shape.rows.stride * z.out[2];
    to.place.all_planes = z.out[0], to.place.all_rows = z.out[1], to.place.all_cols = z.out[2];
    run_grid(blocks, splits, 64, memory_of_gemm<atom, tile, A, B>.bytes(), [&](char* shared) {
      A a = image;
      B b{{w.data(), {0, 0}, taps * channels, 1}};
      auto result = to;
      gemm_sizes s{all,     z.filters,      most_planes * most_rows * most_cols * channels,
                   tiles_m, tiles_n,        1,
                   splits,  partial.data(), arrivals.data()};
      shift_to_phase<Shape>(a, b, result.place, s, entry_of(s) / s.inner_batch);
      gemm<atom, tile>(a, b, result, s, shared);
    });
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(static_cast<double>(y[i]), expected[i], 1e-4) << i;
  }
}
TEST(device_convolution, phases_part_the_result) {
  // strides, taps and padding; uneven taps, places that strides don't divide, phases without a tap
  check_phases<phase_shape{{}, {2, 4, 1}, {2, 4, 1}}>({2, 3, 5, {1, 4, 3}, {1, 8, 6}, {}, {1, 1, 1}, {0, 1, 1}});
  check_phases<phase_shape{{}, {2, 3, 1}, {2, 3, 0}}>({2, 3, 40, {1, 4, 4}, {1, 7, 9}, {}, {1, 1, 1}, {0, 1, 0}});
  check_phases<phase_shape{{2, 2, 0}, {2, 2, 0}, {2, 2, 0}}>({2, 3, 5, {2, 3, 3}, {4, 6, 6}, {}, {1, 1, 1}, {0, 0, 0}});
  check_phases<phase_shape{{2, 3, 1}, {1, 2, 1}, {3, 4, 2}}>({2, 3, 4, {3, 3, 4}, {5, 2, 9}, {}, {1, 1, 1}, {1, 1, 2}});
  check_phases<phase_shape{{}, {3, 2, 0}, {2, 1, 0}}>({1, 3, 4, {1, 3, 3}, {1, 8, 5}, {}, {1, 1, 1}, {0, 0, 0}});
  check_phases<phase_shape{{}, {}, {4, 6, 5}}>({2, 3, 4, {1, 1, 5}, {1, 1, 12}, {}, {1, 1, 1}, {0, 0, 5}});
}

// Groups of channels, two images, by the definition: forwards an output gathers, backwards an input scatters.
template <grouped_tile Tile> void check_grouped(int groups, const int (&in)[3], const int (&out)[3]) {
  constexpr int batch = 2;
  const int channels = groups * Tile.depth, filters = groups * Tile.filters;
  const int pixels_in = in[0] * in[1] * in[2], pixels = out[0] * out[1] * out[2];
  constexpr int kernel[3] = {Tile.planes, Tile.rows, Tile.cols},
                stride[3] = {Tile.stride_planes, Tile.stride_rows, Tile.stride_cols},
                dilation[3] = {Tile.dilation_planes, Tile.dilation_rows, Tile.dilation_cols},
                pad[3] = {Tile.pad_planes, Tile.pad_rows, Tile.pad_cols};
  constexpr int taps = kernel[0] * kernel[1] * kernel[2];
  const auto x = random_values<float>(static_cast<std::size_t>(batch * channels * pixels_in), 1),
             w = random_values<float>(static_cast<std::size_t>(Tile.depth * taps * filters), 2);
  std::vector<float> y(static_cast<std::size_t>(batch * filters * pixels), 77);
  grouped_sizes s{};
  s.image_step = i64{channels} * pixels_in;
  s.channel_step = Tile.last ? 1 : pixels_in, s.col_step = Tile.last ? channels : 1;
  s.row_step = s.col_step * in[2], s.plane_step = s.row_step * in[1];
  s.filters = filters, s.planes = in[0], s.height = in[1], s.width = in[2];
  s.out_planes = out[0], s.out_rows = out[1], s.out_cols = out[2];
  s.work = i64{batch} * filters / Tile.run * out[0] * out[1] * ((out[2] + Tile.outputs - 1) / Tile.outputs);
  const stores result{
      {{y.data(), {i64{filters} * pixels, 0, Tile.last ? filters : 1, Tile.last ? 1 : pixels}, pixels}}};
  for (int at = 0; at < s.work; ++at) grouped_convolution<Tile>(x.data(), w.data(), result, s, at);

  std::vector<double> expected(y.size(), 0);
  const auto each = [](const int(&extent)[3], auto&& f) {
    for (int p = 0; p < extent[0]; ++p)
      for (int r = 0; r < extent[1]; ++r)
        for (int c = 0; c < extent[2]; ++c) f(std::array{p, r, c});
  };
  const auto place = [](const int(&extent)[3], const std::array<int, 3>& at) {
    return (at[0] * extent[1] + at[1]) * extent[2] + at[2];
  };
  for (int n = 0; n < batch; ++n)
    for (int f = 0; f < filters; ++f)
      each(Tile.backwards ? in : out, [&](const std::array<int, 3>& p) {
        each(kernel, [&](const std::array<int, 3>& k) {
          std::array<int, 3> q{};
          const int(&to)[3] = Tile.backwards ? out : in;
          for (std::size_t d = 0; d < 3; ++d) {
            q[d] = p[d] * stride[d] + k[d] * dilation[d] - pad[d];
            if (q[d] < 0 || q[d] >= to[d]) return;
          }
          const int from = place(in, Tile.backwards ? p : q), at = place(out, Tile.backwards ? q : p);
          for (int c = 0; c < Tile.depth; ++c) {
            const int channel = f / Tile.filters * Tile.depth + c;
            expected[static_cast<std::size_t>(n * filters * pixels + at * (Tile.last ? filters : 1) +
                                              f * (Tile.last ? 1 : pixels))] +=
                double{x[static_cast<std::size_t>(n * s.image_step + channel * s.channel_step + from * s.col_step)]} *
                double{w[static_cast<std::size_t>((c * taps + place(kernel, k)) * filters + f)]};
          }
        });
      });
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(static_cast<double>(y[i]), expected[i], 1e-5) << i;
}

TEST(device_convolution, a_channel_each) {
  // four channels a thread, four neighbors of a row
  check_grouped<grouped_tile{.run = 4,
                             .outputs = 4,
                             .last = true,
                             .rows = 3,
                             .cols = 2,
                             .part = 2,
                             .stride_rows = 2,
                             .pad_rows = 1,
                             .pad_cols = 1}>(8, {1, 7, 9}, {1, 4, 10});
  check_grouped<grouped_tile{.run = 2,
                             .outputs = 2,
                             .last = true,
                             .rows = 3,
                             .cols = 2,
                             .part = 2,
                             .stride_rows = 2,
                             .stride_cols = 2,
                             .dilation_cols = 2,
                             .pad_rows = 1,
                             .pad_cols = 1}>(6, {1, 8, 9}, {1, 4, 5});
  check_grouped<grouped_tile{
      .outputs = 8, .rows = 3, .cols = 2, .part = 2, .stride_rows = 2, .pad_rows = 1, .pad_cols = 1}>(3, {1, 7, 9},
                                                                                                      {1, 4, 10});
  check_grouped<grouped_tile{.outputs = 4,
                             .planes = 2,
                             .rows = 3,
                             .cols = 2,
                             .part = 2,
                             .stride_planes = 2,
                             .stride_cols = 2,
                             .dilation_planes = 2,
                             .pad_planes = 1,
                             .pad_cols = 1}>(3, {5, 7, 9}, {3, 5, 5});
}
TEST(device_convolution, few_channels_a_group) {
  check_grouped<grouped_tile{.outputs = 4, .depth = 3, .filters = 2, .rows = 3, .cols = 2, .part = 2, .pad_rows = 1}>(
      3, {1, 5, 7}, {1, 5, 6});
  check_grouped<grouped_tile{
      .outputs = 2, .last = true, .depth = 2, .filters = 3, .rows = 2, .cols = 3, .part = 3, .pad_cols = 1}>(
      2, {1, 5, 7}, {1, 4, 7});
}
TEST(device_convolution, rows_of_a_window_are_held_in_parts) {
  check_grouped<grouped_tile{.outputs = 4, .cols = 11, .part = 4, .pad_cols = 5}>(3, {1, 2, 19}, {1, 2, 19});
  check_grouped<grouped_tile{.outputs = 2, .cols = 5, .part = 2, .stride_cols = 3, .dilation_cols = 4, .pad_cols = 1}>(
      2, {1, 1, 40}, {1, 1, 9});
}
TEST(device_convolution, transposed_with_few_channels_a_group) {
  check_grouped<grouped_tile{.outputs = 4,
                             .rows = 4,
                             .cols = 4,
                             .part = 4,
                             .stride_rows = 2,
                             .stride_cols = 2,
                             .pad_rows = 1,
                             .pad_cols = 1,
                             .backwards = true}>(3, {1, 4, 5}, {1, 8, 10});
  check_grouped<grouped_tile{.run = 2,
                             .outputs = 4,
                             .last = true,
                             .rows = 2,
                             .cols = 5,
                             .part = 5,
                             .stride_cols = 2,
                             .dilation_cols = 3,
                             .pad_cols = 5,
                             .backwards = true}>(4, {1, 3, 6}, {1, 4, 14});
  check_grouped<grouped_tile{.outputs = 6,
                             .depth = 3,
                             .filters = 2,
                             .planes = 2,
                             .rows = 2,
                             .cols = 2,
                             .part = 2,
                             .stride_planes = 2,
                             .stride_rows = 3,
                             .stride_cols = 3,
                             .pad_planes = 1,
                             .backwards = true}>(2, {3, 2, 4}, {5, 6, 13});
  // windows that begin past the padding
  check_grouped<grouped_tile{.outputs = 2, .cols = 2, .part = 2, .stride_cols = 2, .pad_cols = 7, .backwards = true}>(
      2, {1, 1, 9}, {1, 1, 6});
}

}  // namespace
}  // namespace kiln::testing
