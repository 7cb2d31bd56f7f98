// Products with weights that are stored in blocks, in every form, against sums in f64.
#include <gtest/gtest.h>

#include "kernel/isa/random_values.hpp"
#include "kiln/core/half.hpp"
#include "kiln/kernel/quantized/gemm.hpp"

namespace kiln::kernels {
namespace {

using testing::random_values;

enum class storage { packed_rows, bytes_by_column, signed_bytes_by_row };

struct quantized_case {
  quantized_form form;
  storage stored = storage::packed_rows;
  std::int64_t m = 1;
  bool in_rows = false;  ///< blocks with their scales
};
void PrintTo(const quantized_case& c, std::ostream* out) {
  *out << c.form.bits << " bits, " << c.m << 'x' << c.form.k << 'x' << c.form.n << ", blocks of " << c.form.block
       << ", scales " << int(c.form.scales) << ", zeros " << int(c.form.zeros) << ", stored " << int(c.stored)
       << ", mantissa " << c.form.numbers.mantissa;
}

class quantized_product {
 public:
  explicit quantized_product(const quantized_case& c) : c_(c), f_(c.form), each_(8 / f_.bits) {
    std::mt19937 engine(static_cast<unsigned>(f_.k * 31 + f_.n * 7 + c.m));
    const std::int64_t columns = c.stored == storage::packed_rows ? f_.depth() : f_.k;
    numbers_.resize(static_cast<std::size_t>(columns * f_.n));
    for (auto& x : numbers_) {
      x = engine() & ((1u << f_.bits) - 1);
      if (f_.numbers.is_float() && !std::isfinite(real(x))) x = 0;
    }
    const std::int64_t blocks = f_.blocks();
    scales_ = random_values<float>(blocks * f_.n, 3);
    if (f_.scales == scale_format::bf16)
      for (float& x : scales_) x = std::ldexp(std::trunc(x * 128), -9);
    if (f_.scales == scale_format::f16)  // of some halves, subnormal ones too
      for (std::size_t i = 0; i < scales_.size(); ++i) scales_[i] = std::ldexp(float(i % 1000), i % 3 == 0 ? -24 : -12);
    if (f_.scales >= scale_format::e8m0)
      for (std::size_t i = 0; i < scales_.size(); ++i) {  // of e4m3 subnormal ones, too
        codes_.push_back(static_cast<std::byte>(f_.scales == scale_format::e8m0 ? 120 + i % 9 : i * 7 % 127));
        scales_[i] = stored_float(codes_.data(), f_.scales, static_cast<std::ptrdiff_t>(i));
      }
    for (std::int64_t i = 0; i < blocks * f_.n; ++i)
      zeros_.push_back(f_.zeros == zero_format::floats ? float(engine() % 64) / 4
                                                       : float(engine() & ((1u << f_.bits) - 1)));
    a_ = random_values<float>(c.m * f_.k, 5);
    for (std::int64_t k = 0; k < f_.block && k < f_.k; ++k) a_[static_cast<std::size_t>(k)] = 0;
  }

  bool unit_serves(bool rounds) const {
    quantized_problem p;
    p.form = f_, p.m = c_.m, p.rounds = rounds;
    return kernels::unit_serves(p);
  }

  std::vector<float> computed(bool rounds, bool fours, bool on_unit = false) const {
    thread_pool pool(3);
    quantized_source from;
    std::vector<std::byte> data, scales(scales_.size() * 4), zeros, rows;
    store_numbers(from.data, data);
    from.scales = {scales.data(), 1, f_.blocks()};
    std::memcpy(scales.data(), scales_.data(), scales.size());
    if (!codes_.empty()) from.scales.at = codes_.data(), from.scale_type = f_.scales;
    store_zeros(from.zeros, zeros, from.data.sign_offset);
    std::vector<std::byte, aligned_allocator<std::byte>> packed(static_cast<std::size_t>(quantized_places(f_).size)),
        scratch;
    if (c_.in_rows) {
      store_rows(data, rows), from.rows = rows.data();
      from.data = from.scales = {};  // rows have both
    }
    // in two parts, as strips are
    constexpr std::int64_t panel = register_tile<std::int32_t>::width;
    const std::int64_t half = f_.n / 2 / panel * panel;
    pack_quantized(pool, packed.data(), f_, from, 0, half);
    pack_quantized(pool, packed.data(), f_, from, half, f_.n);
    std::vector<float> c(static_cast<std::size_t>(c_.m * f_.n), -77);
    quantized_problem p{f_, c_.m, a_.data(), f_.k, packed.data(), c.data(), f_.n, rounds, on_unit};
    scratch.resize(static_cast<std::size_t>(quantized_scratch(p, pool.size()).size));
    std::vector<int> done(c.size(), 0);
    const auto after = [&](std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols, float* at,
                           std::ptrdiff_t row) {
      EXPECT_EQ(at, c.data() + row0 * f_.n + col0);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t j = 0; j < cols; ++j) ++done[static_cast<std::size_t>(at + r * row + j - c.data())];
    };
    const auto multiply = [&]<class Numbers>() {
      fours ? quantized_gemm<byte_fours, Numbers>(pool, p, scratch.data(), after)
            : quantized_gemm<byte_pairs, Numbers>(pool, p, scratch.data(), after);
    };
    if (f_.numbers.is_float())
      f_.bits == 4 ? multiply.operator()<float_numbers<4>>() : multiply.operator()<float_numbers<8>>();
    else
      f_.bits == 2   ? multiply.operator()<unsigned_numbers<2>>()
      : f_.bits == 4 ? multiply.operator()<unsigned_numbers<4>>()
                     : multiply.operator()<unsigned_numbers<8>>();
    EXPECT_EQ(done, std::vector<int>(c.size(), 1));
    return c;
  }

  // Against f64: what f32 sums may differ by, and what rounding each block by its greatest magnitude may.
  void expect_near(const std::vector<float>& c, bool rounds) const {
    for (std::int64_t r = 0; r < c_.m; ++r)
      for (std::int64_t j = 0; j < f_.n; ++j) {
        double sum = 0, magnitudes = 0, rounded = 0;
        for (std::int64_t b = 0; b < f_.blocks(); ++b) {
          double greatest = 0, weights = 0;
          for (std::int64_t k = b * f_.block; k < std::min(f_.k, (b + 1) * f_.block); ++k) {
            const double x = a_[static_cast<std::size_t>(r * f_.k + k)], w = weight(k, j);
            sum += x * w;
            magnitudes += std::abs(x * w);
            greatest = std::max(greatest, std::abs(x));
            weights += std::abs(w);
          }
          rounded += greatest / 254 * weights;
        }
        const double zero_part = f_.zeros == zero_format::uniform ? 1 : 16;
        const double bound = 2e-6 * zero_part * magnitudes + 1e-6 + (rounds ? 1.001 * rounded : 0);
        ASSERT_NEAR(c[static_cast<std::size_t>(r * f_.n + j)], sum, bound)
            << r << ' ' << j << (rounds ? " rounded" : "");
      }
  }

 private:
  template <class T> struct aligned_allocator {
    using value_type = T;
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n, std::align_val_t(64))); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t(64)); }
    friend bool operator==(aligned_allocator, aligned_allocator) { return true; }
  };

  std::uint32_t number(std::int64_t k, std::int64_t j) const {
    const std::int64_t row = c_.stored == storage::packed_rows ? f_.depth() : f_.k;
    return numbers_[static_cast<std::size_t>(j * row + k)];
  }
  double weight(std::int64_t k, std::int64_t j) const {
    const auto block = static_cast<std::size_t>(j * f_.blocks() + k / f_.block);
    const float zero = f_.zeros == zero_format::uniform ? f_.zero : zeros_[block];
    return (real(number(k, j)) - zero) * scales_[block] * f_.factor;
  }
  // What a number means, by its own type.
  double real(std::uint32_t code) const {
    if (!f_.numbers.is_float()) return code;
    const auto c = static_cast<std::uint8_t>(code);
    if (f_.numbers.mantissa == 1) return narrow_of<float4_e2m1>(c);
    if (f_.numbers.mantissa == 3)
      return f_.numbers.bias == 7 ? narrow_of<float8_e4m3fn>(c) : narrow_of<float8_e4m3fnuz>(c);
    return f_.numbers.bias == 15 ? narrow_of<float8_e5m2>(c) : narrow_of<float8_e5m2fnuz>(c);
  }
  void store_numbers(quantized_source::part& to, std::vector<std::byte>& data) const {
    if (c_.stored == storage::packed_rows) {
      data.resize(static_cast<std::size_t>(f_.n * f_.depth() / each_));
      for (std::size_t k = 0; k < numbers_.size(); ++k) {
        const std::size_t in_block = k % 32,
                          i = f_.split_nibbles ? k - in_block + in_block % 16 * 2 + in_block / 16 : k;
        data[i / static_cast<std::size_t>(each_)] |= static_cast<std::byte>(
            numbers_[k] << (i % static_cast<std::size_t>(each_) * static_cast<std::size_t>(f_.bits)));
      }
      to = {data.data(), 1, f_.depth(), f_.bits};
      return;
    }
    const bool by_column = c_.stored == storage::bytes_by_column;
    to = {nullptr, by_column ? f_.n : 1, by_column ? 1 : f_.k, 8, by_column ? 0 : 1 << (f_.bits - 1)};
    data.resize(static_cast<std::size_t>(f_.n * f_.k));
    for (std::int64_t k = 0; k < f_.k; ++k)
      for (std::int64_t j = 0; j < f_.n; ++j)
        data[static_cast<std::size_t>(k * to.k_step + j * to.n_step)] =
            static_cast<std::byte>(number(k, j) - static_cast<std::uint32_t>(to.sign_offset));
    to.at = data.data();
  }
  // Blocks of a scale and numbers each.
  void store_rows(const std::vector<std::byte>& data, std::vector<std::byte>& to) const {
    const auto bytes = static_cast<std::size_t>(f_.words() * 4);
    for (std::size_t b = 0; b < scales_.size(); ++b) {
      const half scale(scales_[b]);
      const auto* const scale_bytes = reinterpret_cast<const std::byte*>(&scale);
      to.insert(to.end(), scale_bytes, scale_bytes + 2);
      for (std::size_t i = 0; i < bytes; ++i) to.push_back(data[b * bytes + i] ^ std::byte(f_.bits == 8 ? 0x80 : 0));
    }
  }
  void store_zeros(quantized_source::part& to, std::vector<std::byte>& zeros, int sign_offset) const {
    if (f_.zeros == zero_format::floats) {
      zeros.resize(zeros_.size() * 4);
      std::memcpy(zeros.data(), zeros_.data(), zeros.size());
      to = {zeros.data(), 1, f_.blocks()};
    } else if (sign_offset != 0) {
      for (float z : zeros_) zeros.push_back(static_cast<std::byte>(static_cast<int>(z) - sign_offset));
      to = {zeros.data(), 1, f_.blocks(), 8, sign_offset};
    } else {
      const std::int64_t row = round_up(f_.blocks(), each_);
      zeros.resize(static_cast<std::size_t>(row * f_.n / each_));
      for (std::int64_t j = 0; j < f_.n; ++j)
        for (std::int64_t b = 0; b < f_.blocks(); ++b) {
          const std::int64_t at = j * row + b;
          zeros[static_cast<std::size_t>(at / each_)] |= static_cast<std::byte>(
              static_cast<unsigned>(zeros_[static_cast<std::size_t>(j * f_.blocks() + b)]) << (at % each_ * f_.bits));
        }
      to = {zeros.data(), 1, row, f_.bits};
    }
  }

  quantized_case c_;
  quantized_form f_;
  std::int64_t each_;
  std::vector<std::uint32_t> numbers_;
  std::vector<float> scales_, zeros_, a_;
  std::vector<std::byte> codes_;  // of scales that are stored in bytes
};

void expect_products(const quantized_case& c) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const quantized_product p(c);
  p.expect_near(p.computed(false, false), false);
  if (::testing::Test::HasFatalFailure() || native_bytes < 32 || c.form.numbers.is_float()) return;
  if (c.form.bits <= byte_pairs::most_bits) p.expect_near(p.computed(true, false), true);
  if (native_bytes == 64 && __builtin_cpu_supports("avx512vnni")) p.expect_near(p.computed(true, true), true);
}

/// On the matrix unit, where there is one that serves: floats within their bound, bytes to the same bits as in vectors.
void expect_products_on_unit(const quantized_case& c) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const quantized_product p(c);
  if (p.unit_serves(false)) p.expect_near(p.computed(false, false, true), false);
  if (::testing::Test::HasFatalFailure() || c.form.numbers.is_float() || !p.unit_serves(true)) return;
  ASSERT_EQ(p.computed(true, true, true), p.computed(true, true));
}

TEST(quantized_of_a_level, every_format_block_and_zero_point) {
  for (const int bits : {2, 4, 8})
    for (const std::int64_t block : {16, 32, 128})
      for (const auto zeros : {zero_format::uniform, zero_format::bytes, zero_format::floats})
        for (const auto scales : {scale_format::f32, scale_format::f16, scale_format::bf16})
          for (const auto stored : {storage::packed_rows, storage::bytes_by_column, storage::signed_bytes_by_row}) {
            quantized_case c;
            c.form = {.k = 3 * block, .n = 21, .block = block, .bits = bits, .scales = scales, .zeros = zeros};
            c.form.zero = static_cast<float>(1 << (bits - 1));
            c.stored = stored;
            expect_products(c);
            c.m = 17;
            if (stored == storage::packed_rows) expect_products_on_unit(c);
            if (::testing::Test::HasFatalFailure()) return;
          }
}

TEST(quantized_of_a_level, floats_of_every_format_and_scale) {
  for (const number_format numbers : {number_format{1, 1}, {3, 7}, {3, 8}, {2, 15}, {2, 16}})
    for (const auto scales : {scale_format::f32, scale_format::f16, scale_format::e8m0, scale_format::e4m3})
      for (const std::int64_t m : {1, 3, 20})
        for (const float factor : {1.0F, .37F}) {
          const int bits = numbers.mantissa == 1 ? 4 : 8;
          const bool packed = m != 3 || bits == 8;
          quantized_case c;
          c.form = {
              .k = 70, .n = 37, .block = 16, .bits = bits, .scales = scales, .numbers = numbers, .factor = factor};
          c.stored = packed ? storage::packed_rows : storage::bytes_by_column;
          c.m = m;
          expect_products(c);
          expect_products_on_unit(c);
          if (::testing::Test::HasFatalFailure()) return;
        }
}

// Every code of every format, alone in its product.
TEST(quantized_of_a_level, each_code_of_a_float_is_exact) {
  for (const number_format numbers : {number_format{1, 1}, {3, 7}, {3, 8}, {2, 15}, {2, 16}}) {
    quantized_form f{.k = 16, .n = 1, .block = 16, .bits = numbers.mantissa == 1 ? 4 : 8, .numbers = numbers};
    const quantized_columns w(f, nullptr, 0);
    for (unsigned code = 0; code < 1u << f.bits; ++code) {
      const auto c = static_cast<std::uint8_t>(code);
      const float wanted = numbers.mantissa == 1 ? narrow_of<float4_e2m1>(c)
                           : numbers.bias == 7   ? narrow_of<float8_e4m3fn>(c)
                           : numbers.bias == 8   ? narrow_of<float8_e4m3fnuz>(c)
                           : numbers.bias == 15  ? narrow_of<float8_e5m2>(c)
                                                 : narrow_of<float8_e5m2fnuz>(c);
      if (!std::isfinite(wanted)) continue;
      const auto word = broadcast<native_vec<std::uint32_t>>(code << f.bits);
      const float found = f.bits == 4 ? float_numbers<4>(w)(word, 1)[0] : float_numbers<8>(w)(word, 1)[0];
      EXPECT_EQ(std::bit_cast<std::uint32_t>(found), std::bit_cast<std::uint32_t>(wanted))
          << numbers.bias << ' ' << code;
    }
  }
}

TEST(quantized_of_a_level, every_number_of_rows_and_columns) {
  for (const std::int64_t m : {1, 2, 3, 5, 7, 11, 12, 29})
    for (const std::int64_t n : {1, 16, 33, 64, 130})
      for (const std::int64_t k : {64, 79, 1100})
        for (const auto zeros : {zero_format::uniform, zero_format::bytes}) {
          quantized_case c;
          c.form = {.k = k, .n = n, .block = 32, .bits = 4, .zeros = zeros, .zero = 8};
          c.m = m;
          expect_products(c);
          expect_products_on_unit(c);
          if (::testing::Test::HasFatalFailure()) return;
        }
}

// Blocks beside their scales, as files have them, whose bytes have halves of 32 numbers; halves by themselves.
TEST(quantized_of_a_level, rows_of_blocks_with_their_scales) {
  for (const std::int64_t m : {1, 3, 6, 13, 29})
    for (const std::int64_t n : {1, 16, 33, 64, 130})
      for (const std::int64_t k : {32, 96, 1120})
        for (const int kind : {0, 1, 2}) {
          quantized_case c;
          c.form = {.k = k, .n = n, .block = 32, .bits = kind < 2 ? 4 : 8, .scales = scale_format::f16};
          c.form.zero = kind < 2 ? 8 : 128;
          c.form.split_nibbles = kind < 2;
          c.in_rows = kind > 0;
          c.m = m;
          expect_products(c);
          expect_products_on_unit(c);
          if (::testing::Test::HasFatalFailure()) return;
        }
}

TEST(quantized_of_a_level, many_rows_are_several_tasks) {
  quantized_case c;
  c.form = {.k = 64, .n = 40, .block = 64, .bits = 4, .zero = 8};
  c.m = 300;
  expect_products(c);
  expect_products_on_unit(c);
}

TEST(quantized_of_a_level, the_unit_takes_what_a_byte_or_bf16_holds) {
  quantized_problem p;
  p.form = {.k = 64, .n = 16, .block = 32, .bits = 4, .zero = 8};
  p.m = 64;
  if (!unit_serves(p)) GTEST_SKIP() << "this level or processor has no matrix unit";
  p.form.zero = 270;  // numbers down to -270
  EXPECT_FALSE(unit_serves(p));
  p.form.zero = 200;
  EXPECT_TRUE(unit_serves(p));
  p.rounds = true;
  EXPECT_FALSE(unit_serves(p));
  p.form.zero = 128;
  EXPECT_EQ(unit_serves(p), matrix_unit::multiplies_bytes());
  p.matrix_unit = false;
  EXPECT_FALSE(unit_serves(p));
  p.matrix_unit = true, p.m = 1;
  EXPECT_FALSE(unit_serves(p));
}

// The parts of a number are bf16 and sum up to it; what is no number is the first part alone.
template <int Bits> void expect_exact_parts(std::int64_t block) {
  const quantized_form f{.k = 100, .n = 1, .block = block, .bits = Bits, .zeros = zero_format::floats};
  const std::int64_t line = std::min<std::int64_t>(64, 2 * block), steps = f.depth() * 2 / line;
  std::vector<float> x = random_values<float>(f.k, 7), sums(static_cast<std::size_t>(f.blocks()));
  x[3] = std::numeric_limits<float>::infinity(), x[50] = -x[3], x[60] = std::numeric_limits<float>::max();
  x[70] = std::bit_cast<float>(0x7f800001u);  // a NaN that truncation would make infinite
  std::vector<std::uint16_t> parts(static_cast<std::size_t>(steps * 3 * line / 2));
  split_row<Bits>(f, x.data(),
                  {reinterpret_cast<std::byte*>(parts.data()), line, 3 * line, line, nullptr, sums.data()});
  for (std::int64_t k = 0; k < f.depth(); ++k) {
    constexpr std::int64_t each = 32 / Bits, half = each / 2;
    const std::int64_t depth = line / 2, step = k / depth, i = k % depth;
    const std::int64_t at = i / each * each + i % each % half * 2 + i % each / half;
    float sum = 0;
    for (int part = 2; part >= 0; --part)
      sum += std::bit_cast<float>(std::uint32_t{parts[static_cast<std::size_t>((step * 3 + part) * depth + at)]} << 16);
    const float wanted = k < f.k ? x[static_cast<std::size_t>(k)] : 0;
    EXPECT_TRUE(sum == wanted || (sum != sum && wanted != wanted)) << Bits << ' ' << k << ' ' << sum << ' ' << wanted;
  }
  EXPECT_TRUE(block < 64 ? sums[0] == x[3] : sums[0] != sums[0]);  // of 64 numbers, both infinities
}
TEST(quantized_of_a_level, parts_of_a_number_are_exact) {
  for (const std::int64_t block : {16, 32, 64}) {
    expect_exact_parts<2>(block);
    expect_exact_parts<4>(block);
    expect_exact_parts<8>(block);
  }
}

TEST(quantized_of_a_level, a_block_that_is_not_finite_gives_no_number) {
  if (native_bytes < 32) GTEST_SKIP() << "this level multiplies no bytes";
  const quantized_form f{.k = 32, .n = 1, .block = 16, .bits = 4};
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(32, 1.0F), scales(2);
    x[20] = bad;
    std::vector<std::int8_t> bytes(32);
    std::vector<std::int32_t> sums(2);
    round_row<4, std::int32_t>(f, x.data(),
                               {reinterpret_cast<std::byte*>(bytes.data()), 16, 16, 0, scales.data(), sums.data()});
    EXPECT_EQ(scales[0], 1.0F / 127);
    EXPECT_EQ(sums[0], 16 * 127);
    EXPECT_FALSE(std::isfinite(scales[1]));
  }
}

}  // namespace
}  // namespace kiln::kernels
