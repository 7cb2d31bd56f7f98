// Images as factors of products, forwards and backwards, and convolutions of a channel each, lane by lane.
#include <gtest/gtest.h>

#include <set>

#include "emulated_device.hpp"
#include "kiln/backend/hip/kernels/atom/atom_fma.hpp"
#include "kiln/backend/hip/kernels/conv/depthwise.hpp"
#include "kiln/backend/hip/kernels/conv/image_operand.hpp"
#include "kiln/backend/hip/kernels/conv/phases.hpp"
#include "kiln/backend/hip/kernels/gemm/gemm.hpp"

namespace kiln::testing {
namespace {

using namespace kiln::gpu;

struct stores {
  static constexpr int width = 1;
  static constexpr bool along_rows = false;
  static constexpr int expected = 0;
  result_place<float, true> place;
  template <int V> struct operands {};
  template <int V> void read(operands<V>&, const position&, int) const {}
  template <class S, int V> void apply(S (&v)[V], const operands<V>&, const position& p, int count) const {
    write_run<along_rows>(place, v, p, count);
  }
};

struct sizes {
  int batch, channels, filters;
  int in[3], out[3];
  int stride[3], dilation[3], pad[3];
};
constexpr int planes = 2, rows = 3, cols = 2;  // of the kernel

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

  // the same by its definition: a window forwards gathers, one backwards scatters
  std::vector<double> expected(y.size(), 0);
  const auto each = [](const int(&extent)[3], auto&& f) {
    for (int p = 0; p < extent[0]; ++p)
      for (int r = 0; r < extent[1]; ++r)
        for (int c = 0; c < extent[2]; ++c) {
          const int at[3] = {p, r, c};
          f(at);
        }
  };
  constexpr int kernel[3] = {planes, rows, cols}, stride[3] = {StridePlanes, StrideRows, StrideCols};
  const auto& from = Backwards ? z.in : z.out;
  const auto& to = Backwards ? z.out : z.in;
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
          const auto place = [](const int(&extent)[3], const int(&at)[3]) {
            return (at[0] * extent[1] + at[1]) * extent[2] + at[2];
          };
          const int image = Backwards ? place(z.in, p) : place(z.in, q),
                    out = Backwards ? place(z.out, q) : place(z.out, p);
          for (int c = 0; c < channels; ++c)
            expected[static_cast<std::size_t>((n * z.filters + f) * pixels + out)] +=
                double{x[static_cast<std::size_t>((n * in + image) * channels + c)]} *
                double{w[static_cast<std::size_t>(f * taps * channels +
                                                  (c / Together * taps + place(kernel, k)) * Together + c % Together)]};
        });
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

// A phase's places reach its own first tap, and no two phases have a place in common.
template <int Rows, int Cols, int PadRows, int PadCols> void check_phases() {
  constexpr int row_step = 1000, col_step = 10;
  float results[Rows * row_step];
  std::set<std::pair<i64, i64>> seen;
  for (int number = 0; number < Rows * Cols; ++number) {
    image_argument<float> image{};
    image.pad_rows = PadRows / Rows, image.pad_cols = PadCols / Cols;
    result_argument<float> place{results, {Rows * row_step, 0, Cols * col_step, 1}, 1};
    shift_to_phase<Rows, Cols, PadRows % Rows, PadCols % Cols>(image, place, number);
    const i64 row = (place.base - results) / row_step, col = (place.base - results) % row_step / col_step;
    EXPECT_EQ((row + PadRows) % Rows, number / Cols);
    EXPECT_EQ((col + PadCols) % Cols, number % Cols);
    EXPECT_EQ(image.pad_rows, (row + PadRows) / Rows);
    EXPECT_EQ(image.pad_cols, (col + PadCols) / Cols);
    EXPECT_TRUE(row < Rows && col < Cols && seen.emplace(row, col).second) << number;
  }
}
TEST(device_convolution, phases_part_the_result) {
  check_phases<2, 2, 1, 1>();
  check_phases<2, 3, 0, 5>();
  check_phases<1, 4, 3, 2>();
}

template <int Channels, int Outputs, int Stride, int Dilation>
void check_depthwise(int channels, int height, int width, int out_rows, int out_cols) {
  constexpr int batch = 2, pad = 1;
  const bool last = Channels > 1;
  const auto x = random_values<float>(static_cast<std::size_t>(batch * channels * height * width), 1),
             w = random_values<float>(static_cast<std::size_t>(rows * cols * channels), 2);
  std::vector<float> y(static_cast<std::size_t>(batch * channels * out_rows * out_cols), 77);
  depthwise_sizes s{};
  s.image_step = i64{channels} * height * width;
  s.channel_step = last ? 1 : i64{height} * width, s.col_step = last ? channels : 1, s.row_step = s.col_step * width;
  s.channels = channels, s.height = height, s.width = width, s.out_rows = out_rows, s.out_cols = out_cols;
  s.stride_rows = 2, s.dilation_rows = 1, s.pad_rows = pad, s.pad_cols = pad;
  s.work = i64{batch} * channels / Channels * out_rows * ((out_cols + Outputs - 1) / Outputs);
  const int pixels = out_rows * out_cols;
  const stores result{{{y.data(), {i64{channels} * pixels, 0, last ? channels : 1, last ? 1 : pixels}, pixels}}};
  using tile = depthwise_tile<Channels, Outputs, rows, cols, Stride, Dilation>;
  for (i64 at = 0; at < s.work; ++at) depthwise<tile>(x.data(), w.data(), result, s, at);
  for (int n = 0; n < batch; ++n)
    for (int c = 0; c < channels; ++c)
      for (int i = 0; i < out_rows; ++i)
        for (int j = 0; j < out_cols; ++j) {
          double sum = 0;
          for (int a = 0; a < rows; ++a)
            for (int b = 0; b < cols; ++b) {
              const int r = i * 2 + a - pad, q = j * Stride + b * Dilation - pad;
              if (r < 0 || r >= height || q < 0 || q >= width) continue;
              sum += double{x[static_cast<std::size_t>(n * s.image_step + c * s.channel_step + r * s.row_step +
                                                       q * s.col_step)]} *
                     double{w[static_cast<std::size_t>((a * cols + b) * channels + c)]};
            }
          const i64 at =
              n * result.place.step[0] + (i * out_cols + j) * result.place.step[2] + c * result.place.step[3];
          ASSERT_NEAR(static_cast<double>(y[static_cast<std::size_t>(at)]), sum, 1e-5) << n << c << i << j;
        }
}

TEST(device_convolution, a_channel_each) {
  check_depthwise<4, 4, 1, 1>(8, 7, 9, 4, 10);
  check_depthwise<2, 2, 2, 2>(6, 8, 9, 4, 5);
  check_depthwise<1, 8, 1, 1>(3, 7, 9, 4, 10);
  check_depthwise<1, 4, 2, 1>(3, 7, 9, 4, 5);
}

}  // namespace
}  // namespace kiln::testing
