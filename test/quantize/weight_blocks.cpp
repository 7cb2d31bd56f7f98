#include "kiln/quantize/weight_blocks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kiln/core/error.hpp"

namespace kiln::test {
namespace {

using namespace quantize;

// Few large weights among many small ones.
std::vector<float> heavy_tailed(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::student_t_distribution<float> at(3);
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& x : out) x = at(engine);
  return out;
}

// The layout and the rule of ONNX Runtime's blockwise quantizer, one code at a time.
struct plain_codes {
  std::vector<int> codes, zeros;
  std::vector<float> scales;
};
plain_codes rounded(const std::vector<float>& w, std::int64_t rows, const block_format& f) {
  plain_codes out;
  const auto depth = static_cast<std::int64_t>(w.size()) / rows, blocks = (depth + f.block - 1) / f.block;
  const auto most = static_cast<float>((1 << f.bits) - 1), half = static_cast<float>(1 << (f.bits - 1));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t b = 0; b < blocks; ++b) {
      float low = INFINITY, high = -INFINITY;
      const auto each = [&](auto&& take) {
        for (std::int64_t k = b * f.block; k < std::min(depth, (b + 1) * f.block); ++k)
          take(w[static_cast<std::size_t>(r * depth + k)]);
      };
      each([&](float x) { low = std::fmin(low, x), high = std::fmax(high, x); });
      float scale = 0, zero = half;
      if (f.symmetric) {
        scale = (std::fabs(high) > std::fabs(low) ? high : low) / -half;
      } else {
        low = std::fmin(low, 0.0f), high = std::fmax(high, 0.0f);
        scale = (high - low) / most;
        zero = scale == 0 ? 0 : std::roundf(std::fmin(std::fmax(-low / scale, 0.0f), most));
      }
      out.scales.push_back(scale);
      out.zeros.push_back(static_cast<int>(zero));
      int written = 0;
      each([&](float x) {
        const float code = std::roundf(x * (scale == 0 ? 0 : 1 / scale) + zero);
        out.codes.push_back(static_cast<int>(std::fmin(std::fmax(code, 0.0f), most)));
        ++written;
      });
      for (; written < f.block; ++written) out.codes.push_back(0);
    }
  return out;
}
std::vector<std::uint8_t> packed(const std::vector<int>& codes, std::int64_t row, std::int64_t bits) {
  std::vector<std::uint8_t> out;
  for (std::size_t from = 0; from < codes.size(); from += static_cast<std::size_t>(row)) {
    unsigned byte = 0;
    std::int64_t used = 0;
    for (std::int64_t k = 0; k < row; ++k) {
      byte |= static_cast<unsigned>(codes[from + static_cast<std::size_t>(k)]) << used;
      used += bits;
      if (used == 8 || k + 1 == row) {
        out.push_back(static_cast<std::uint8_t>(byte));
        byte = 0;
        used = 0;
      }
    }
  }
  return out;
}

double distance(const std::vector<float>& w, const block_weights& b, double power) {
  double sum = 0;
  for (std::int64_t r = 0; r < b.rows; ++r) {
    const std::vector<float> row = b.row(r);
    for (std::int64_t k = 0; k < b.depth; ++k)
      sum +=
          std::pow(std::fabs(row[static_cast<std::size_t>(k)] - w[static_cast<std::size_t>(r * b.depth + k)]), power);
  }
  return sum;
}

TEST(weight_blocks, rounding_has_the_bytes_of_onnx_runtime) {
  thread_pool pool(2);
  for (const std::int64_t bits : {2, 4, 8})
    for (const std::int64_t block : {16, 32, 128, 512})
      for (const bool symmetric : {false, true})
        for (const std::int64_t depth : {16, 48, 129, 1000}) {
          SCOPED_TRACE(::testing::Message() << bits << " bits, blocks of " << block << ", depth " << depth);
          const block_format f{bits, block, symmetric};
          std::vector<float> w = heavy_tailed(3 * depth, 5);
          std::fill_n(w.begin(), 16, 0.0f);  // perhaps a whole block
          const block_weights found = in_blocks(w, 3, f, weight_method::rtn, pool);
          const plain_codes wanted = rounded(w, 3, f);
          EXPECT_EQ(found.scales, wanted.scales);
          EXPECT_EQ(found.data, packed(wanted.codes, found.blocks() * block, bits));
          if (symmetric)
            EXPECT_TRUE(found.zeros.empty());
          else
            EXPECT_EQ(found.zeros, packed(wanted.zeros, found.blocks(), bits));
        }
}

TEST(weight_blocks, a_search_finds_nearer_codes_than_the_range) {
  thread_pool pool(1);
  const std::vector<float> w = heavy_tailed(8 * 256, 1);
  for (const bool symmetric : {false, true}) {
    const block_format f{4, 32, symmetric};
    const double range = distance(w, in_blocks(w, 8, f, weight_method::rtn, pool), 2),
                 searched = distance(w, in_blocks(w, 8, f, weight_method::k_quant, pool), 2);
    EXPECT_LT(searched, .95 * range) << symmetric;
  }
}

TEST(weight_blocks, robust_zero_points_lessen_most_errors) {
  thread_pool pool(1);
  const std::vector<float> w = heavy_tailed(8 * 256, 2);
  const block_format f{4, 64, false};
  const block_weights robust = in_blocks(w, 8, f, weight_method::hqq, pool);
  EXPECT_EQ(robust.real_zeros.size(), 8u * 4);
  EXPECT_TRUE(robust.zeros.empty());
  EXPECT_LT(distance(w, robust, .7), .97 * distance(w, in_blocks(w, 8, f, weight_method::rtn, pool), .7));
}

TEST(weight_blocks, equal_weights_are_kept_as_they_are) {
  thread_pool pool(1);
  for (const weight_method m : {weight_method::rtn, weight_method::k_quant, weight_method::hqq})
    for (const float x : {0.0f, 3.0f, -2.5f})
      for (const float y : in_blocks(std::vector<float>(32, x), 1, {4, 32, false}, m, pool).row(0))
        EXPECT_FLOAT_EQ(y, x) << to_string(m);
}

TEST(weight_blocks, threads_change_no_byte) {
  thread_pool one(1), more(3);
  const std::vector<float> w = heavy_tailed(37 * 96, 3);
  for (const weight_method m : {weight_method::rtn, weight_method::k_quant, weight_method::hqq}) {
    const block_weights a = in_blocks(w, 37, {4, 32, false}, m, one), b = in_blocks(w, 37, {4, 32, false}, m, more);
    EXPECT_EQ(a.data, b.data);
    EXPECT_EQ(a.scales, b.scales);
    EXPECT_EQ(a.real_zeros, b.real_zeros);
  }
}

TEST(weight_blocks, mistakes_are_named) {
  thread_pool pool(1);
  const std::vector<float> w(64, 1.0f);
  EXPECT_THROW(in_blocks(w, 1, {3, 32, true}, weight_method::rtn, pool), error);
  EXPECT_THROW(in_blocks(w, 1, {4, 8, true}, weight_method::rtn, pool), error);
  EXPECT_THROW(in_blocks(w, 1, {4, 48, true}, weight_method::rtn, pool), error);
  EXPECT_THROW(in_blocks(w, 5, {4, 32, true}, weight_method::rtn, pool), error);
  EXPECT_THROW(in_blocks(std::vector<float>{1, NAN}, 1, {4, 16, true}, weight_method::rtn, pool), error);
  EXPECT_THROW(in_blocks(std::vector<float>{3e38f, -3e38f}, 1, {4, 16, false}, weight_method::rtn, pool), error);
  for (const float y : in_blocks(std::vector<float>(16, 1e-40f), 1, {4, 16, false}, weight_method::rtn, pool).row(0))
    EXPECT_LT(std::abs(y), 1e-38f);
  EXPECT_EQ(weight_method_named("hqq"), weight_method::hqq);
  EXPECT_THROW(weight_method_named("gguf"), error);
}

}  // namespace
}  // namespace kiln::test
