// Copies, poolings and index ops, thread by thread.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "emulated_device.hpp"
#include "kiln/backend/hip/impl/index/index_call.hpp"
#include "kiln/backend/hip/kernels/conv/pad_channels.hpp"
#include "kiln/backend/hip/kernels/gemm/epilogue.hpp"
#include "kiln/backend/hip/kernels/index/copy.hpp"
#include "kiln/backend/hip/kernels/index/index.hpp"
#include "kiln/backend/hip/kernels/reduce/window.hpp"

using namespace kiln::gpu;

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<int> counted(i64 n) {
  std::vector<int> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<int>(i * 37 % 1009);
  return v;
}

// A copy of [3, 5, 7] with steps of the operand: by elements and by runs, of as many threads as leave a rest.
template <int Run, class Index> void check_copy(const i64 (&from_steps)[3]) {
  const i64 lens[3] = {3, 5, 7}, total = 105;
  copy_sizes s{total, {3, 5, 7}, {from_steps[0], from_steps[1], from_steps[2]}, {35, 7, 1}};
  const std::vector<int> from = counted(400);
  std::vector<int> whole(static_cast<std::size_t>(total) + 8, -1), runs = whole;
  constexpr i64 threads = 6;
  for (i64 t = 0; t < threads; ++t) {
    copy_any<3, Index>(whole.data(), from.data(), s, t, threads);
    copy_runs<3, Run, Index>(runs.data(), from.data(), s, t, threads);
  }
  for (i64 i = 0; i < total; ++i) {
    const i64 a = i / 35 * from_steps[0] + i / 7 % lens[1] * from_steps[1] + i % 7 * from_steps[2];
    ASSERT_EQ(whole[static_cast<std::size_t>(i)], from[static_cast<std::size_t>(a)]) << i;
    ASSERT_EQ(runs[static_cast<std::size_t>(i)], from[static_cast<std::size_t>(a)]) << i;
  }
  for (std::size_t i = total; i < runs.size(); ++i) ASSERT_TRUE(runs[i] == -1 && whole[i] == -1) << i;
}

TEST(moves, a_copy_takes_each_element_from_its_place) {
  check_copy<4, int>({35, 7, 1});
  check_copy<4, i64>({1, 3, 15});
  check_copy<16, int>({100, 0, 2});
  check_copy<2, int>({0, 9, 0});
}

TEST(moves, a_run_of_bytes_ends_with_the_last) {
  for (const i64 count : {i64{0}, i64{1}, i64{16}, i64{53}}) {
    alignas(16) unsigned char from[80], to[80];
    for (int i = 0; i < 80; ++i) from[i] = static_cast<unsigned char>(i + 1), to[i] = 0;
    for (int at = 0; at < (count + 15) / 16; ++at) copy_run(to, from, count, at);
    for (int i = 0; i < 80; ++i) ASSERT_EQ(to[i], i < count ? i + 1 : 0) << count << " " << i;
  }
}

// One dim of 11 with a window, in two images of three channels: as defined, in any count of loops written out.
template <int Mode, class Taps>
void check_pool(i64 window, i64 stride, i64 dilation, i64 before, i64 after, bool padded) {
  const i64 in = 11, out = (in + before + after - (window - 1) * dilation - 1) / stride + 1, planes = 6;
  pool_sizes n{};
  n.dims[0] = n.dims[1] = {1, 1, 1, 1, 1, 0, 0, 0, 0};
  n.dims[2] = {in, out, window, stride, dilation, before, after, 1, 1};
  n.channels = 3, n.image = {3 * in, 3 * out}, n.channel = {in, out};
  n.counts_padding = padded, n.power = 2;
  const std::vector<float> x = random_values<float>(static_cast<std::size_t>(planes * in), 3);
  std::vector<float> y(static_cast<std::size_t>(planes * out));
  for (int at = 0; at < planes * out; ++at) pool<Mode, false, 1, Taps>(y.data(), x.data(), n, at);
  if constexpr (Taps::cols != 0)
    if (stride == 1 && dilation == 1) {
      const std::vector<float> one_by_one = y;
      std::fill(y.begin(), y.end(), -9.0f);
      constexpr int together = 4;
      for (int at = 0; at < planes * ((out + together - 1) / together); ++at)
        pool_line<Mode, Taps, together>(y.data(), x.data(), n, at);
      ASSERT_EQ(y, one_by_one) << "in groups";
    }
  for (i64 at = 0; at < planes * out; ++at) {
    const i64 start = at % out * stride - before;
    float sum = Mode == 0 ? -2.0f : 0.0f;
    int inside = 0, whole = 0;
    for (i64 k = 0; k < window; ++k) {
      const i64 i = start + k * dilation;
      whole += i < in + after;
      if (i < 0 || i >= in) continue;
      const float v = x[static_cast<std::size_t>(at / out * in + i)];
      ++inside;
      sum = Mode == 0 ? std::max(sum, v) : Mode == 1 ? sum + v : sum + v * v;
    }
    if (Mode == 1) sum /= static_cast<float>(padded ? whole : inside);
    if (Mode == 2) sum = std::sqrt(sum);
    ASSERT_NEAR(y[static_cast<std::size_t>(at)], sum, 1e-6f) << at;
  }
}

TEST(moves, a_pooling_takes_the_taps_within_its_operand) {
  check_pool<0, window_taps<1, 1, 3>>(3, 1, 1, 1, 1, false);
  check_pool<0, window_taps<0, 0, 3>>(3, 1, 1, 0, 2, false);
  check_pool<1, window_taps<1, 1, 5>>(5, 1, 1, 2, 2, false);
  check_pool<1, window_taps<1, 1, 4>>(4, 1, 1, 1, 2, true);
  check_pool<2, window_taps<1, 1, 2>>(2, 1, 1, 0, 0, false);
  check_pool<0, window_taps<0, 0, 3>>(3, 2, 2, 3, 1, false);
  check_pool<1, window_taps<1, 1, 4>>(4, 3, 1, 2, 2, false);
  check_pool<1, window_taps<0, 0, 0>>(4, 3, 1, 2, 2, true);
  check_pool<1, window_taps<0, 0, 2>>(2, 1, 3, 2, 2, true);
  check_pool<2, window_taps<1, 1, 3>>(3, 2, 1, 0, 2, false);
}

// Two images of three channels of 2 x 5, channels first and last; lines with two pixels before and one past them.
TEST(moves, channels_and_lines_are_padded_with_zeros) {
  const std::vector<int> from = counted(60);
  constexpr i64 across = 8, before = 2, pixels = 2 * 2 * across;
  for (const bool last : {false, true}) {
    const channel_sizes n = last ? channel_sizes{30, 1, 15, 3, pixels, 2, 5, across, before}
                                 : channel_sizes{30, 10, 5, 1, pixels, 2, 5, across, before};
    std::vector<int> to(pixels * 8 + 8, -1);
    for (i64 at = 0; at < pixels + 4; ++at) pad_channels<3, 8>(to.data(), from.data(), n, at);
    for (i64 at = 0; at < pixels; ++at)
      for (i64 c = 0; c < 8; ++c) {
        const i64 line = at / across, col = at % across - before, pixel = line * 5 + col;
        const i64 place = last ? pixel * 3 + c : line / 2 * 30 + c * 10 + line % 2 * 5 + col;
        const bool exists = c < 3 && col >= 0 && col < 5;
        ASSERT_EQ(to[static_cast<std::size_t>(at * 8 + c)], exists ? from[static_cast<std::size_t>(place)] : 0) << at;
      }
    for (std::size_t i = pixels * 8; i < to.size(); ++i) ASSERT_EQ(to[i], -1) << "past the last pixel";
  }
}

// A result of 21 x 37 whose operand has lines of eight: of a tile of 16 x 24 at (16, 24).
struct counting_result {
  static constexpr int expected = 8;
  struct {
    position at(int b0, int b1, int row, int col) const { return {b0, b1, row, col}; }
  } place;
  std::vector<int>* seen;
  void expect(const position& p) const { ++(*seen)[static_cast<std::size_t>(p.row * 37 + p.col)]; }
};

TEST(moves, each_line_of_a_tiles_operands_is_prefetched_once) {
  std::vector<int> seen(21 * 37, 0);
  run_grid(1, 1, 32, 0, [&](char*) { expect_operands<16, 24, 32>(counting_result{{}, &seen}, 0, 0, 16, 24, 21, 37); });
  for (int row = 0; row < 21; ++row)
    for (int col = 0; col < 37; ++col)
      EXPECT_EQ(seen[static_cast<std::size_t>(row * 37 + col)], row >= 16 && (col == 24 || col == 32))
          << row << " " << col;
}

kiln::hip::index_call gather_call() {
  kiln::hip::index_call c{"gather",
                          "index/index.hpp",
                          {"unsigned", "i64", "unsigned"},
                          "gather(p2, p0, p1, n, at, faults)",
                          gather_sizes{5, 6, 7},
                          1 << 20};
  c.each = 4;
  return c;
}

TEST(moves, sizes_of_much_work_stand_in_the_text) {
  const std::string text = kiln::hip::call_text(gather_call(), {true, 4});
  EXPECT_THAT(text, HasSubstr("constexpr kiln::gpu::gather_sizes n = __builtin_bit_cast(kiln::gpu::gather_sizes, "
                              "words{{5ull, 6ull, 7ull}});"));
  EXPECT_THAT(text, HasSubstr("using index = int;"));
  EXPECT_THAT(text, HasSubstr("constexpr index all = 1048576;"));
  EXPECT_THAT(text, Not(HasSubstr("const kiln::gpu::gather_sizes n,"))) << "and are not passed";
  const std::string passed = kiln::hip::call_text(gather_call(), {false, 0});
  EXPECT_THAT(passed, HasSubstr("const kiln::gpu::gather_sizes n, i64 work"));
  EXPECT_THAT(passed, HasSubstr("const i64 at = next;"));
}

}  // namespace
