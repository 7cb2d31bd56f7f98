// Products of bytes by each machine that this level has, against plain sums: matrices, windows of images, in groups and
// channel by channel, and what is made of the sums in registers.
#include <gtest/gtest.h>

#include <random>

#include "kiln/kernel/int8/image.hpp"
#include "kiln/kernel/int8/pack_bytes.hpp"
#include "kiln/kernel/int8/product.hpp"
#include "kiln/kernel/int8/requantize.hpp"

namespace kiln::kernels {
namespace {

// A convolution, its image stored with channels adjacent or as planes.
struct window_case {
  conv_problem problem;
  bool is_signed = false, planes = false, extreme = false;
  std::int32_t outside = 0;
};

std::int64_t number(std::byte b, bool is_signed) {
  return is_signed ? static_cast<std::int8_t>(b) : static_cast<std::uint8_t>(b);
}

template <class Machine> class windows_of {
 public:
  explicit windows_of(const window_case& c) : c_(c), p_(c.problem) {
    std::mt19937 engine(static_cast<unsigned>(p_.depth() + 7 * p_.out_channels));
    for (std::int64_t i = 0; i < p_.batch * p_.input_pixels() * p_.in_channels; ++i)
      x_.push_back(static_cast<std::byte>(c.extreme ? 0x80 : engine()));
    for (std::int64_t i = 0; i < p_.out_channels * p_.depth(); ++i)
      w_.push_back(static_cast<std::int8_t>(c.extreme ? -128 : engine()));
    fill_image();
  }

  std::int64_t rows() const { return p_.batch * p_.output_pixels(); }
  // The problem over packed weights and a padded copy, or the image itself.
  integer_problem describe(thread_pool& pool) {
    const window_runs<Machine> runs(p_);
    const std::int64_t n = p_.out_channels;
    std::vector<std::int32_t> sums;
    if (runs.by_channel(p_)) {
      packed_.resize(static_cast<std::size_t>(packed_channels_size<Machine>(p_.taps(), n)));
      pack_channels<Machine>(packed_.data(), w_.data(), p_.taps(), n);
      sums.assign(packed_.begin(), packed_.begin() + n);
    } else {
      sums = pack_groups(pool, runs);
    }
    const padded_image<Machine> image(p_);
    copy_.assign(static_cast<std::size_t>(image.size()), std::byte(0x55));
    image.write(pool, image_, copy_.data());
    offsets_.resize(static_cast<std::size_t>(runs.count));
    integer_problem to;
    to.m = rows(), to.n = n;
    to.b = packed_.data();
    find_windows<Machine>(p_, copy_.data(), {image.step(0), image.step(1), image.step(2)}, image.image(),
                          offsets_.data(), to);
    shift_.assign(static_cast<std::size_t>(round_up(n, 64)), 0);
    for (std::int64_t j = 0; c_.is_signed && j < n; ++j)
      shift_[static_cast<std::size_t>(j)] = -Machine::offset * sums[static_cast<std::size_t>(j)];
    to.shift = shift_.data();
    return to;
  }

  std::vector<std::int32_t> computed(thread_pool& pool, bool matrix_unit = true) {
    integer_problem p = describe(pool);
    p.matrix_unit = matrix_unit;
    std::vector<std::int32_t> c(static_cast<std::size_t>(p.m * p.n));
    const std::int64_t words = p.runs.count * p.runs.words;
    std::vector<std::int32_t> scratch(static_cast<std::size_t>(integer_gemm_scratch<Machine>(pool.size(), words)));
    integer_gemm_by_sums<Machine>(pool, p, scratch.data(),
                                  [&](std::int64_t row0, std::int64_t count, std::int64_t col0, std::int64_t cols,
                                      const std::int32_t* sums, std::ptrdiff_t sums_row) {
                                    for (std::int64_t r = 0; r < count; ++r)
                                      std::copy_n(sums + r * sums_row, cols, c.data() + (row0 + r) * p.n + col0);
                                  });
    return c;
  }
  std::vector<std::int32_t> expected() const {
    std::vector<std::int32_t> c;
    for (std::int64_t i = 0; i < p_.batch; ++i)
      for (std::int64_t z = 0; z < p_.output(0); ++z)
        for (std::int64_t y = 0; y < p_.output(1); ++y)
          for (std::int64_t x = 0; x < p_.output(2); ++x)
            for (std::int64_t m = 0; m < p_.out_channels; ++m) c.push_back(sum(i, {z, y, x}, m));
    return c;
  }

 private:
  std::int8_t weight(std::int64_t m, std::int64_t k, std::int64_t t) const {
    return w_[static_cast<std::size_t>((m * p_.group_inputs() + k) * p_.taps() + t)];
  }
  // Packs the weights of each group and gives the sums of all columns.
  std::vector<std::int32_t> pack_groups(thread_pool& pool, const window_runs<Machine>& runs) {
    const std::int64_t depth = runs.count * runs.words() * Machine::depth, n = p_.group_outputs();
    const std::int64_t of_run = runs.each / p_.group_inputs(), each = packed_integers_size<Machine>(depth, n);
    packed_.resize(static_cast<std::size_t>(p_.groups * each));
    std::vector<std::int32_t> sums;
    for (std::int64_t g = 0; g < p_.groups; ++g) {
      std::vector<std::int8_t> turned(static_cast<std::size_t>(n * depth), 0);
      for (std::int64_t m = 0; m < n; ++m)
        for (std::int64_t t = 0; t < p_.taps(); ++t)
          for (std::int64_t k = 0; k < p_.group_inputs(); ++k)
            turned[static_cast<std::size_t>(m * depth + t / of_run * runs.words() * Machine::depth +
                                            t % of_run * p_.group_inputs() + k)] = weight(g * n + m, k, t);
      std::int32_t* const to = packed_.data() + g * each;
      pack_integers<Machine>(pool, to, turned.data(), 1, depth, depth, n);
      sums.insert(sums.end(), to, to + n);
    }
    return sums;
  }
  void fill_image() {
    const std::int64_t c = p_.in_channels, pixels = p_.input_pixels();
    image_.at = x_.data();
    image_.batch = c * pixels;
    image_.channel = c_.planes ? pixels : 1;
    image_.axis[2] = c_.planes ? 1 : c;
    image_.axis[1] = image_.axis[2] * p_.input[2];
    image_.axis[0] = image_.axis[1] * p_.input[1];
    image_.is_signed = c_.is_signed;
    image_.outside = c_.outside;
  }
  std::int32_t sum(std::int64_t i, const conv_problem::extents& out, std::int64_t m) const {
    std::int64_t sum = 0;
    for (std::int64_t t = 0; t < p_.taps(); ++t) {
      const conv_problem::extents tap{t / p_.kernel[2] / p_.kernel[1], t / p_.kernel[2] % p_.kernel[1],
                                      t % p_.kernel[2]};
      const std::byte* at = image_.at + i * image_.batch;
      bool inside = true;
      for (std::size_t d = 0; d < 3; ++d) {
        const std::int64_t from = out[d] * p_.stride[d] - p_.pad_begin[d] + tap[d] * p_.dilation[d];
        inside = inside && from >= 0 && from < p_.input[d];
        at += from * image_.axis[d];
      }
      at += m / p_.group_outputs() * p_.group_inputs() * image_.channel;
      for (std::int64_t k = 0; k < p_.group_inputs(); ++k)
        sum += (inside ? number(at[k * image_.channel], c_.is_signed) : c_.outside) * weight(m, k, t);
    }
    return static_cast<std::int32_t>(sum);
  }

  window_case c_;
  conv_problem p_;
  byte_image image_;
  std::vector<std::byte> x_, copy_;
  std::vector<std::int8_t> w_;
  std::vector<std::int32_t> packed_, shift_;
  std::vector<std::ptrdiff_t> offsets_;
};

conv_problem matrix(std::int64_t m, std::int64_t n, std::int64_t k) {
  conv_problem p;
  p.input[1] = m;
  p.out_channels = n;
  p.in_channels = k;
  return p;
}

std::vector<conv_problem> some_convolutions() {
  std::vector<conv_problem> all;
  for (const std::int64_t channels : {1, 3, 4, 18, 32})
    for (const conv_problem& p :
         {conv_problem{
              .batch = 2, .input = {1, 7, 9}, .kernel = {1, 3, 3}, .pad_begin = {0, 1, 1}, .pad_end = {0, 1, 1}},
          conv_problem{.input = {1, 9, 21}, .kernel = {1, 3, 2}, .stride = {1, 2, 3}, .pad_begin = {0, 2, 0}},
          conv_problem{.input = {1, 9, 18}, .kernel = {1, 2, 3}, .dilation = {1, 2, 2}, .pad_end = {0, 0, 3}},
          conv_problem{
              .batch = 2, .input = {3, 4, 5}, .kernel = {2, 2, 2}, .pad_begin = {1, 0, 1}, .pad_end = {0, 1, 0}},
          conv_problem{.batch = 3, .input = {1, 8, 6}, .stride = {1, 2, 2}}}) {
      all.push_back(p);
      all.back().in_channels = channels;
      all.back().out_channels = 2 * channels + 1;
    }
  return all;
}

// In groups of several channels, and of one, which are convolved alone where a group has one filter, too.
std::vector<conv_problem> grouped_convolutions() {
  std::vector<conv_problem> all;
  const auto add = [&](const conv_problem& around, std::int64_t groups, std::int64_t inputs, std::int64_t outputs) {
    all.push_back(around);
    all.back().groups = groups;
    all.back().in_channels = groups * inputs, all.back().out_channels = groups * outputs;
  };
  const conv_problem around{
      .batch = 2, .input = {1, 7, 9}, .kernel = {1, 3, 3}, .pad_begin = {0, 1, 1}, .pad_end = {0, 1, 1}};
  const conv_problem strided{
      .input = {1, 9, 21}, .kernel = {1, 5, 2}, .stride = {1, 2, 3}, .dilation = {1, 1, 2}, .pad_begin = {0, 2, 0}};
  const conv_problem solid{.input = {3, 4, 5}, .kernel = {2, 1, 3}, .pad_end = {1, 0, 2}};
  for (const conv_problem& p : {around, strided, solid}) {
    for (const std::int64_t channels : {2, 5, 16, 24, 32, 40, 63, 64, 97, 144, 300}) add(p, channels, 1, 1);
    add(p, 2, 4, 4), add(p, 3, 5, 7), add(p, 4, 1, 2), add(p, 2, 16, 80), add(p, 5, 24, 24), add(p, 2, 3, 300);
  }
  return all;
}

template <class Machine> void expect_exact() {
  thread_pool pool(2);
  std::vector<window_case> cases;
  for (const std::int64_t m : {1, 7, 120})
    for (const std::int64_t n : {1, 17, 65, 300})
      for (const std::int64_t k : {1, 4, 101}) cases.push_back({matrix(m, n, k)});
  for (const auto& some : {some_convolutions(), grouped_convolutions()})
    for (const conv_problem& p : some) cases.push_back({p});
  for (const window_case& shape : cases)
    for (const bool is_signed : {false, true})
      for (const bool planes : {false, true})
        for (const bool extreme : {false, true}) {
          const window_case c{shape.problem, is_signed, planes, extreme, is_signed ? -77 : 200};
          windows_of<Machine> w(c);
          // in vectors; the matrix unit has a test of its own
          ASSERT_EQ(w.computed(pool, false), w.expected())
              << c.problem.in_channels << " channels, " << c.problem.groups << " groups, kernel " << c.problem.kernel[1]
              << 'x' << c.problem.kernel[2] << (is_signed ? ", signed" : "") << (planes ? ", planes" : "");
        }
}

// What the ops of an epilogue compute, one after the other.
float rounded(float x, const byte_rounding& r) { return std::clamp(kiln::round(x / r.scale), r.low, r.high); }

template <class Machine> void expect_requantized() {
  thread_pool pool(2);
  using kind = requantization::kind;
  for (const std::int64_t n : {5, 16, 70, 79, 128})
    for (const kind addend : {kind::none, kind::unsigned_bytes, kind::signed_bytes, kind::floats})
      for (const kind result : {kind::unsigned_bytes, kind::signed_bytes, kind::floats})
        for (const bool rounds : {false, true}) {
          window_case c{some_convolutions()[0]};
          c.problem.out_channels = n;
          if (n == 79 || n == 128) c.problem.groups = c.problem.in_channels = n;
          if (n == 16) c.problem.groups = 2, c.problem.in_channels = 6;
          if (n == 70) c.problem.in_channels = 18;
          windows_of<Machine> w(c);
          integer_problem p = w.describe(pool);
          const auto sums = w.computed(pool, false);
          std::vector<std::int32_t> scratch(
              static_cast<std::size_t>(integer_gemm_scratch<Machine>(pool.size(), p.runs.count * p.runs.words)));
          p = with_memory<Machine>(p, scratch.data(), pool.size());
          const std::size_t count = sums.size();
          std::vector<float> scale, bias, more(count), floats(count);
          for (std::int64_t j = 0; j < round_up(n, 64); ++j)
            scale.push_back(.01F + .001F * static_cast<float>(j)), bias.push_back(static_cast<float>(j) - 3.3F);
          std::vector<std::byte> bytes(count), made(count);
          for (std::size_t i = 0; i < count; ++i)
            bytes[i] = std::byte(i * 37), more[i] = static_cast<float>(i % 91) - 40;
          requantization how;
          how.scale = scale.data();
          how.bias = n == 16 ? nullptr : bias.data();
          how.rounds = how.rounds_floats = rounds;
          how.first = {.7F, 1 / .7F, -128, 127, .4F};
          how.last = {1.3F, 1 / 1.3F, result == kind::signed_bytes ? -125.F : 0.F, 120, 1.3F};
          how.late_bias = rounds && n != 128 ? scale.data() : nullptr;
          how.zero = result == kind::signed_bytes ? -3 : 11;
          how.addend_kind = addend;
          how.addend_zero = 7, how.addend_scale = .31F;
          how.addend = addend == kind::floats ? reinterpret_cast<const std::byte*>(more.data()) : bytes.data();
          how.rectifies = n == 79;
          how.result_kind = result;
          how.result = result == kind::floats ? reinterpret_cast<std::byte*>(floats.data()) : made.data();
          how.addend_row = how.result_row = n;
          ASSERT_TRUE(how.first.rounds_as_division() && how.last.rounds_as_division());
          integer_product<Machine>(
              pool, p, [&](std::int64_t, std::int64_t, unsigned) { return how; }, [](auto&&...) {});
          for (std::size_t i = 0; i < count; ++i) {
            const std::size_t j = i % static_cast<std::size_t>(n);
            float y = static_cast<float>(sums[i]) * scale[j];
            if (how.bias) y += bias[j];
            if (rounds) y = rounded(y, how.first) * .4F;
            if (how.late_bias) y += scale[j];
            if (addend == kind::floats) y += more[i];
            if (addend == kind::unsigned_bytes || addend == kind::signed_bytes)
              y += static_cast<float>(number(bytes[i], addend == kind::signed_bytes) - 7) * .31F;
            if (how.rectifies) y = std::max(y, 0.F);
            if (result == kind::floats) {
              if (rounds) y = rounded(y, how.last) * 1.3F;
              ASSERT_EQ(floats[i], y) << i << " of " << n;
            } else {
              const auto stored = static_cast<std::int64_t>(rounded(y, how.last)) + how.zero;
              ASSERT_EQ(number(made[i], result == kind::signed_bytes), stored) << i << " of " << n;
            }
          }
        }
}

template <class Machine> void expect_machine(bool present) {
  if (!present) GTEST_SKIP() << "this processor has no such instruction";
  expect_exact<Machine>();
  expect_requantized<Machine>();
}

// Rows that lie evenly and others, depths and columns that end within a tile, few rows.
TEST(integers_of_a_level, matrix_unit) {
  if (!unit_multiplies<four_bytes> || !matrix_unit::multiplies_bytes())
    GTEST_SKIP() << "no matrix unit that multiplies bytes";
  thread_pool pool(2);
  std::vector<window_case> cases;
  for (const std::int64_t m : {8, 15, 16, 17, 33, 64, 150})
    for (const std::int64_t n : {1, 16, 17, 33, 63, 64, 300})
      for (const std::int64_t k : {13, 64, 65, 128, 252}) cases.push_back({matrix(m, n, k), m % 2 == 0});
  for (const conv_problem& p : some_convolutions()) cases.push_back({p, true}), cases.push_back({p});
  conv_problem wide{.batch = 2, .input = {1, 6, 37}, .kernel = {1, 3, 3}, .pad_begin = {0, 1, 1}, .pad_end = {0, 1, 1}};
  wide.in_channels = 64, wide.out_channels = 70;
  cases.push_back({wide});
  wide.in_channels = 48;
  cases.push_back({wide});
  for (const bool extreme : {false, true})
    for (window_case c : cases) {
      c.extreme = extreme;
      windows_of<four_bytes> w(c);
      ASSERT_EQ(w.computed(pool), w.computed(pool, false))
          << w.rows() << " rows, " << c.problem.out_channels << " columns, " << c.problem.in_channels
          << " channels, kernel " << c.problem.kernel[1] << 'x' << c.problem.kernel[2];
    }
}

TEST(integers_of_a_level, words) { expect_machine<two_words>(true); }

TEST(integers_of_a_level, bytes) {
  const bool longer = native_bytes == 64 || __builtin_cpu_supports("avx512vl");
  expect_machine<four_bytes>(native_bytes > 16 && __builtin_cpu_supports("avx512vnni") && longer);
}

TEST(integers_of_a_level, bytes_without_avx512) {
  if constexpr (native_bytes == 32)
    expect_machine<four_bytes_by<true>>(__builtin_cpu_supports("avxvnni"));
  else
    GTEST_SKIP() << "only the level of 256 bits uses this encoding";
}

// An inverse whose last bit is wrong moves edges between whole numbers.
TEST(integers_of_a_level, a_scale_whose_steps_do_not_round_as_division_is_found) {
  byte_rounding r{.0196078F, 1 / .0196078F, 0, 255};
  EXPECT_TRUE(r.rounds_as_division());
  r.inverse *= 1.001F;
  EXPECT_FALSE(r.rounds_as_division());
}

}  // namespace
}  // namespace kiln::kernels
