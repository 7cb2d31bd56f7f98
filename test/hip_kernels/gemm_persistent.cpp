// Products whose blocks work tile after tile and have the copy unit of sm_90 read and write, on the emulated device.
#include "kiln/backend/hip/kernels/gemm/gemm_persistent.hpp"

#include <gtest/gtest.h>

#include "emulated_copies.hpp"
#include "emulated_device.hpp"
#include "kiln/backend/hip/kernels/conv/image_operand.hpp"
#include "kiln/backend/hip/kernels/platform/narrow.hpp"

using namespace kiln::gpu;
using kiln::hip::copy_mode;
using kiln::hip::tensor_boxes;

namespace {

// result = |sums + bias of the column + operand|; the operand is brought in boxes where `Boxed`. Lines of rows lie
// apart where it says so.
template <class T, bool Boxed, bool Apart> struct added {
  using element = T;
  static constexpr int width = 8, expected = 0;
  static constexpr bool along_rows = false, boxed = Boxed, rows_alike = Boxed;
  result_place<T, Apart> place;
  epilogue_operand bias, operand;
  template <int V> struct operands { held_run<T, V> bias, operand; };
  template <int V> void read(operands<V>& to, const position& p, int count) const {
    read_run<T, run_kind::contiguous, false>(to.bias, bias, p, count);
    if constexpr (!Boxed) read_run<T, run_kind::contiguous, false>(to.operand, operand, p, count);
  }
  void take_boxed(operands<2>& to, u32 two) const { to.operand.words[0] = two; }
  template <class S, int V> float value(const S (&sums)[V], const operands<V>& x, int j) const {
    return std::abs(sums[j] + widen(x.bias.at(j)) + widen(x.operand.at(j)));
  }
  template <class S, int V> void apply(const S (&sums)[V], const operands<V>& x, const position& p, int count) const {
    T y[V];
    for (int j = 0; j < V; ++j) y[j] = narrow<T>(value(sums, x, j));
    write_run<false>(place, y, p, count);
  }
};

tensor_boxes rows_of(const void* base, int rows, int cols, int step, int lines, int width = 2) {
  tensor_boxes to;
  to.base = base;
  to.bytes = width == 1;
  if (to.bytes) to.along = 128;
  to.extents[0] = static_cast<u64>(cols), to.extents[1] = static_cast<u64>(rows);
  to.step_bytes[0] = static_cast<u64>(step * width);
  to.across = static_cast<unsigned>(lines);
  return to;
}

struct sizes {
  int rows, cols, depth, blocks;
  int pixels = 0;  // of lines of rows that lie apart, where there are such
};

// Rows of a factor along its depth or, turned, side by side.
template <class T, bool Turned> struct factor_values {
  int step;
  std::vector<T> all;
  factor_values(int rows, int depth, unsigned seed)
      : step(Turned ? (rows + 7) / 8 * 8 + 8 : depth),
        all(random_values<T>(static_cast<std::size_t>(step) * static_cast<std::size_t>(Turned ? depth : rows), seed)) {}
  float at(int row, int k) const {
    return widen(all[static_cast<std::size_t>(Turned ? k * step + row : row * step + k)]);
  }
  matrix_operand<T, !Turned, 16 / sizeof(T)> operand() const {
    return {{all.data(), {0, 0}, Turned ? 1 : step, Turned ? step : 1}};
  }
  tensor_boxes boxes(int rows, int depth, int lines) const {
    return Turned ? rows_of(all.data(), depth, rows, step, 64)
                  : rows_of(all.data(), rows, depth, step, persistent_tile::lines_of_box(rows, lines), sizeof(T));
  }
};

// The left factor `a` is seen through `boxes_a`; `value(i, k)` is what it has for row i at depth k. Results are of To.
template <class T, persistent_tile Sized, bool Boxed, bool Apart = false, class To = T, bool Turned = false, class A,
          class Value>
void check_of(const sizes& z, const A& a, const tensor_boxes& boxes_a, Value value) {
  static_assert(Sized.leaving_at() % 1024 == 0 && Sized.stages() >= 2);
  static_assert(Sized.shared_bytes() <= persistent_tile::block_bytes);
  const int step = z.cols + 8;  // of the result and the operand, whose rows are apart, and lines of rows further
  const int pixels = Apart ? z.pixels : z.rows, line = pixels * step + 3 * 8;
  const auto count = [](int n) { return static_cast<std::size_t>(n); };
  const std::size_t all = count(z.rows / pixels * line);
  const factor_values<T, Turned> b(z.cols, z.depth, 2);
  const auto bias = random_values<To>(count(z.cols + 8), 3), operand = random_values<To>(all, 4);
  std::vector<To> c(all, narrow<To>(77.0f));
  const auto fb = b.operand();
  const int of_line = Apart ? line : 0;
  const added<To, Boxed, Apart> result{{{c.data(), {of_line, 0, step, 1}, pixels}},
                                       {bias.data(), {0, 0, 0, 1}},
                                       {operand.data(), {of_line, 0, step, 1}}};
  const int tiles_m = (z.rows + Sized.rows - 1) / Sized.rows, tiles_n = (z.cols + Sized.cols - 1) / Sized.cols;
  const gemm_sizes s{z.rows, z.cols, z.depth, tiles_m, tiles_n, 1, 1, nullptr, nullptr};
  const auto positions = [&](const void* base) {
    tensor_boxes to = rows_of(base, pixels, z.cols, step, 64);
    if (!Apart) return to;
    to.mode = copy_mode::im2col, to.rank = 3;
    to.extents[2] = static_cast<u64>(z.rows / pixels), to.step_bytes[1] = static_cast<u64>(line) * 2;
    return to;
  };
  const tensor_boxes boxes_b = b.boxes(z.cols, z.depth, Sized.cols), boxes_c = positions(c.data()),
                     boxes_x = positions(operand.data());
  const persistent_maps maps{map_of(boxes_a), map_of(boxes_b), map_of(boxes_c), map_of(boxes_x)};
  run_grid(z.blocks, 1, persistent_tile::warps_m * warp_lanes, Sized.shared_bytes(),
           [&](char* shared) { gemm_persistent<T, Sized>(a, fb, result, s, maps, shared); });
  std::vector<bool> written(all);
  for (int i = 0; i < z.rows; ++i)
    for (int j = 0; j < z.cols; ++j) {
      const std::size_t at = count(i / pixels * line + i % pixels * step + j);
      written[at] = true;
      float sum = widen(bias[count(j)]) + widen(operand[at]);
      for (int k = 0; k < z.depth; ++k) sum += value(i, k) * b.at(j, k);
      ASSERT_NEAR(widen(c[at]), std::abs(sum), 1e-2 * (1 + std::abs(sum))) << i << " " << j;
    }
  for (std::size_t at = 0; at < all; ++at)
    ASSERT_TRUE(written[at] || widen(c[at]) == 77) << "beside the result: " << at;
}
template <class T, persistent_tile Sized, bool Boxed, bool Apart = false, class To = T, bool TurnedA = false,
          bool TurnedB = false>
void check(const sizes& z) {
  SCOPED_TRACE(std::to_string(Sized.cols) + (Sized.alternate ? " alternate " : " halves ") +
               std::to_string(Sized.boxes));
  const factor_values<T, TurnedA> a(z.rows, z.depth, 1);
  check_of<T, Sized, Boxed, Apart, To, TurnedB>(z, a.operand(), a.boxes(z.rows, z.depth, persistent_tile::rows),
                                                [&](int i, int k) { return a.at(i, k); });
}
template <class T, int Boxes, bool Boxed> void check_all(const sizes& z) {
  check<T, persistent_tile{64, false, Boxes}, Boxed>(z);
  check<T, persistent_tile{64, true, Boxes}, Boxed>(z);
  check<T, persistent_tile{128, false, Boxes}, Boxed>(z);
  check<T, persistent_tile{128, true, Boxes}, Boxed>(z);
}

TEST(device_gemm_persistent, results_leave_through_sums) { check_all<f16, 0, false>({150, 136, 72, 2}); }
TEST(device_gemm_persistent, results_leave_through_boxes) {
  check_all<f16, 3, false>({300, 200, 72, 2});
  check_all<bf16, 3, false>({70, 264, 8, 1});
}
// More tiles than a ring has boxes, rows and columns that fill no box, one step and several.
TEST(device_gemm_persistent, operands_are_brought_to_boxes) {
  check_all<f16, 4, true>({300, 200, 72, 2});
  check_all<bf16, 4, true>({520, 72, 136, 1});
  check_all<f16, 4, true>({40, 328, 64, 3});
}
TEST(device_gemm_persistent, tiles_of_256_columns) {
  check<f16, persistent_tile{256, false, 2}, false>({300, 264, 136, 2});
  check<f16, persistent_tile{256, false, 4}, true>({300, 264, 136, 2});
}
// Factors whose rows or columns are neighbors, both or one: depths and columns that end within a box.
TEST(device_gemm_persistent, factors_lie_across_the_depth) {
  check<f16, persistent_tile{64, false, 0}, false, false, f16, false, true>({150, 136, 72, 2});
  check<f16, persistent_tile{128, true, 4}, true, false, f16, false, true>({300, 200, 136, 2});
  check<bf16, persistent_tile{256, false, 2}, false, false, bf16, false, true>({130, 328, 72, 1});
  check<f16, persistent_tile{128, false, 3}, false, false, f16, true, false>({200, 136, 72, 1});
  check<f16, persistent_tile{64, true, 3}, false, false, f16, true, true>({300, 72, 40, 2});
  check<bf16, persistent_tile{256, false, 4}, true, false, bf16, true, true>({150, 264, 200, 1});
}
// Floats of eight bits: depths that end within a step, steps that are summed apart, halves of 256 columns, f32 and
// 16-bit results.
TEST(device_gemm_persistent, floats_of_eight_bits) {
  using e4m3 = kiln::float8_e4m3fn;
  using e5m2 = kiln::float8_e5m2;
  check<e4m3, persistent_tile{64, true, 0}, false, false, f16>({150, 136, 144, 2});
  check<e4m3, persistent_tile{128, false, 4}, true, false, f16>({300, 200, 272, 2});
  check<e4m3, persistent_tile{128, true, 3}, false, false, bf16>({300, 200, 128 * 9 + 16, 1});
  check<e4m3, persistent_tile{256, false, 2}, false, false, f16>({150, 264, 400, 1});
  check<e5m2, persistent_tile{256, false, 2}, false, false, f16>({270, 264, 128 * 6 + 16, 2});  // groups begin apart
  check<e5m2, persistent_tile{64, false, 3}, false, true, f16>({21 * 15, 72, 160, 2, 21});
  check<e5m2, persistent_tile{256, false, 0}, false, false, float>({130, 264, 272, 1});
}
// More steps than stages.
TEST(device_gemm_persistent, stages_are_filled_again) {
  check<f16, persistent_tile{64, true, 4}, true>({270, 136, 64 * 13, 1});
  check<f16, persistent_tile{128, false, 4}, true>({270, 136, 64 * 13, 1});
}
// Lines of rows that lie apart, as those of a transposed convolution's phase: shorter and longer than a box.
TEST(device_gemm_persistent, rows_lie_apart) {
  check<f16, persistent_tile{64, true, 4}, true, true>({21 * 15, 72, 72, 2, 21});
  check<f16, persistent_tile{128, false, 3}, false, true>({21 * 15, 200, 72, 1, 21});
  check<bf16, persistent_tile{128, true, 4}, true, true>({3 * 100, 72, 8, 1, 100});
  check<f16, persistent_tile{64, false, 0}, false, true>({21 * 15, 72, 72, 2, 21});
}

// Windows of 3 x 3 that reach past the edges of two images, strides of 2: a tile has windows of both.
TEST(device_gemm_persistent, windows_of_images) {
  using T = f16;
  constexpr int images = 2, channels = 64, height = 19, width = 23, out_rows = 10, out_cols = 12, kernel = 3;
  const auto x = random_values<T>(images * height * width * channels, 1);
  image_argument<T> at{};
  at.base = x.data();
  at.channel_step = 1, at.col_step = channels, at.row_step = width * channels,
  at.image_step = height * width * channels;
  at.planes = 1, at.height = height, at.width = width;
  at.out_rows = out_rows, at.out_cols = out_cols, at.out_pixels = out_rows * out_cols;
  at.stride_planes = at.dilation_planes = at.dilation_rows = at.dilation_cols = 1;
  at.stride_rows = at.stride_cols = 2, at.pad_rows = at.pad_cols = 1;
  const image_operand<T, true, channels, 8, channels, kernel, kernel> a{at};
  tensor_boxes boxes;
  boxes.base = x.data(), boxes.mode = copy_mode::im2col, boxes.rank = 4, boxes.across = persistent_tile::rows;
  const u64 extents[] = {channels, width, height, images};
  for (int d = 0; d < 4; ++d) boxes.extents[d] = extents[d];
  boxes.step_bytes[0] = channels * 2, boxes.step_bytes[1] = width * channels * 2;
  boxes.step_bytes[2] = height * width * channels * 2;
  boxes.lower[0] = boxes.lower[1] = -1;
  boxes.upper[0] = -1 + (out_cols - 1) * 2 - (width - 1), boxes.upper[1] = -1 + (out_rows - 1) * 2 - (height - 1);
  boxes.stride[1] = boxes.stride[2] = 2;
  const auto value = [&](int i, int k) {
    const int image = i / (out_rows * out_cols), pixel = i % (out_rows * out_cols), tap = k / channels;
    const int row = pixel / out_cols * 2 - 1 + tap / kernel, col = pixel % out_cols * 2 - 1 + tap % kernel;
    if (row < 0 || row >= height || col < 0 || col >= width) return 0.0f;
    return widen(x[static_cast<std::size_t>(((image * height + row) * width + col) * channels + k % channels)]);
  };
  const sizes z{images * out_rows * out_cols, 72, channels * kernel * kernel, 1};
  check_of<T, persistent_tile{64, true, 4}, true>(z, a, boxes, value);
  check_of<T, persistent_tile{128, false, 3}, false>(z, a, boxes, value);
}

}  // namespace
