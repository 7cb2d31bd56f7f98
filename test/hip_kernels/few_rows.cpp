// Products of few rows by constant weights, as they are and as they are stored.
#include "kiln/backend/hip/kernels/gemm/skinny_gemm.hpp"
#include "kiln/backend/hip/kernels/gemm/skinny_gemm_staged.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "emulated_device.hpp"
#include "kiln/backend/hip/kernels/platform/narrow.hpp"
#include "kiln/core/dtype.hpp"

using namespace kiln::gpu;

namespace {

// result = sums * 2 + a value of each position
template <class T> struct doubled {
  static constexpr int width = 8;
  static constexpr bool along_rows = false;
  result_place<T, false> place;
  epilogue_operand bias;
  template <int V> struct operands { held_run<T, V> bias; };
  template <int V> void read(operands<V>& to, const position& p, int count) const {
    read_run<T, run_kind::contiguous, false>(to.bias, bias, p, count);
  }
  template <class S, int V> void apply(S (&v)[V], const operands<V>& x, const position& p, int count) const {
    T out[V];
    for (int i = 0; i < V; ++i) out[i] = narrow<T>(v[i] * 2 + widen(x.bias.at(i)));
    write_run<false>(place, out, p, count);
  }
};

// `weight(j, k)` is what the weights mean; both products round once, to T. The left factor is of `From`.
// `run(left, result)` is the kernel.
template <class T, class From = T, class Weight, class Run>
void check_product(int rows, int cols, int depth, Weight weight, Run run) {
  const int row_step = depth + 8;  // rows lie apart
  const auto n = [](int count) { return static_cast<std::size_t>(count); };
  auto a = random_values<From>(n(rows * row_step), 1);
  for (int i = 0; i < rows; ++i)  // what nobody may read
    for (int k = depth; k < row_step; ++k) a[n(i * row_step + k)] = narrow<From>(NAN);
  const auto bias = random_values<T>(n(rows * cols), 3);
  std::vector<T> c(n(rows * cols + 8), narrow<T>(77.0f));
  const doubled<T> result{{{c.data(), {0, 0, cols, 1}, 0}}, {bias.data(), {0, 0, cols, 1}}};
  run(matrix_argument<From>{a.data(), {0, 0}, row_step, 1}, result);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) {
      double sum = 0;
      for (int k = 0; k < depth; ++k) sum += static_cast<double>(widen(a[n(i * row_step + k)])) * weight(j, k);
      const double expected = 2 * sum + static_cast<double>(widen(bias[n(i * cols + j)]));
      const double bound = kiln::elementary::same<T, f16> ? 1e-3 : 8e-3;
      ASSERT_NEAR(static_cast<double>(widen(c[n(i * cols + j)])), expected, bound * (1 + std::abs(expected)))
          << i << " " << j;
    }
  for (int i = 0; i < 8; ++i) EXPECT_EQ(widen(c[n(rows * cols + i)]), 77.0f);
}

template <class T, int Atoms, int Tiles, int Warps, int Ahead, class From = T, class Weights, class Weight>
void check(const Weights& weights, int rows, int cols, int depth, Weight weight) {
  check_product<T, From>(rows, cols, depth, weight, [&](const matrix_argument<From>& left, const doubled<T>& result) {
    run_grid((cols + Tiles * 16 - 1) / (Tiles * 16), 1, Warps * warp_lanes,
             static_cast<std::size_t>(Warps * Atoms * 8 * few_rows_step(Tiles * 16)) * sizeof(float),
             [&](char* shared) {
               skinny_gemm<T, Weights, Atoms, Tiles, Warps, Ahead>(left, weights, result, rows, cols, depth,
                                                                   reinterpret_cast<float*>(shared));
             });
  });
}
template <class T, staged_lines Slots, class Weights, class Weight>
void check_staged(const Weights& weights, int rows, int cols, int depth, int blocks, Weight weight) {
  check_product<T>(rows, cols, depth, weight, [&](const matrix_argument<T>& left, const doubled<T>& result) {
    run_grid(blocks, 1, Slots.warps * warp_lanes, static_cast<std::size_t>(Slots.bytes()), [&](char* shared) {
      skinny_gemm_staged<T, Weights, Slots>(left, weights, result, rows, cols, depth, shared);
    });
  });
}

// Of both kernels: numbers in memory, and what they mean.
template <class T> struct plain {
  std::vector<T> b;
  int depth;
  plain(int cols, int depth) : b(random_values<T>(static_cast<std::size_t>(cols * depth), 2)), depth(depth) {}
  plain_numbers<T> weights() const { return {{b.data(), depth * 2, nullptr, nullptr, 0, 0, 0}}; }
  double operator()(int j, int k) const {
    return static_cast<double>(widen(b[static_cast<std::size_t>(j * depth + k)]));
  }
};
template <class T, int Atoms, int Tiles, int Warps, int Ahead> void check_plain(int rows, int cols, int depth) {
  const plain<T> b(cols, depth);
  check<T, Atoms, Tiles, Warps, Ahead>(b.weights(), rows, cols, depth, b);
}
template <class T, staged_lines Slots> void check_plain_staged(int rows, int cols, int depth, int blocks) {
  SCOPED_TRACE(std::to_string(cols) + " columns, depth " + std::to_string(depth));
  const plain<T> b(cols, depth);
  check_staged<T, Slots>(b.weights(), rows, cols, depth, blocks, b);
}

TEST(device_few_rows, one_row) {
  check_plain<f16, 1, 1, 4, 2>(1, 32, 512);
  check_plain<bf16, 1, 2, 2, 3>(1, 64, 256);
}
TEST(device_few_rows, many_rows_of_ragged_sizes) {
  check_plain<f16, 1, 1, 4, 2>(7, 40, 296);  // a depth that ends within a chunk
  check_plain<f16, 2, 1, 2, 4>(13, 24, 72);  // fewer chunks than are read ahead
  check_plain<bf16, 4, 2, 4, 1>(29, 72, 520);
}

TEST(device_few_rows, lines_of_one_row) {
  constexpr staged_lines slots{2, 4, 3, 8};
  check_plain_staged<f16, slots>(1, 200, 512, 3);  // tiles that other blocks go on with
  check_plain_staged<bf16, slots>(1, 64, 1032, 1);
}
TEST(device_few_rows, lines_of_many_rows_and_ragged_sizes) {
  check_plain_staged<f16, staged_lines{2, 2, 2, 8}>(7, 104, 296, 2);    // a depth that ends within a line
  check_plain_staged<f16, staged_lines{1, 4, 4, 16}>(13, 56, 72, 2);    // fewer lines than warps
  check_plain_staged<bf16, staged_lines{2, 4, 3, 32}>(29, 40, 200, 9);  // fewer runs of columns than blocks
}
TEST(device_few_rows, blocks_share_columns_evenly) {
  for (const int cols : {1, 7, 256, 4096, 11008})
    for (const int blocks : {1, 5, 132}) {
      EXPECT_EQ(first_column(cols, 4, 0, blocks), 0);
      EXPECT_EQ(first_column(cols, 4, blocks, blocks), cols);
      for (int b = 0; b < blocks; ++b) {
        const int first = first_column(cols, 4, b, blocks), count = first_column(cols, 4, b + 1, blocks) - first;
        EXPECT_EQ(first % 4 * (cols - first), 0);
        EXPECT_GE(count, std::min(cols / blocks / 4 * 4, cols - first));
        EXPECT_LE(count, (cols / blocks / 4 + 1) * 4);
      }
    }
}

// Numbers of `Weights::bits` bits, seeded, with their scales and zero points.
template <class T, class Weights> struct stored {
  std::vector<unsigned char> data, zeros;
  std::vector<T> scales;
  int depth, zero;
  bool zeros_apart, is_signed;
  stored(int cols, int depth, int block, int zero, bool zeros_apart, bool is_signed)
      : data(static_cast<std::size_t>(cols * depth * Weights::bits / 8)),
        depth(depth),
        zero(zero),
        zeros_apart(zeros_apart),
        is_signed(is_signed) {
    const int blocks = depth / block;
    zeros.resize(static_cast<std::size_t>(cols * zero_row(blocks)));
    std::mt19937 engine(5);
    for (auto* bytes : {&data, &zeros})
      for (unsigned char& x : *bytes) x = static_cast<unsigned char>(engine());
    scales = random_values<T>(static_cast<std::size_t>(cols * blocks), 6);
    for (T& x : scales) x = narrow<T>(widen(x) / 16);
  }
  static int zero_row(int blocks) { return (blocks * Weights::bits + 7) / 8; }
  static int field(const std::vector<unsigned char>& of, int row_bytes, int row, int at) {
    constexpr int each = 8 / Weights::bits;
    return of[static_cast<std::size_t>(row * row_bytes + at / each)] >> at % each * Weights::bits &
           ((1 << Weights::bits) - 1);
  }
  Weights weights(int block) const {
    Weights w;
    static_cast<stored_argument&>(w) = {data.data(),
                                        depth * Weights::bits / 8,
                                        scales.data(),
                                        zeros.data(),
                                        depth / block,
                                        zero_row(depth / block),
                                        is_signed ? zero + 128 : zero};
    return w;
  }
  double value(int block, int row, int k) const {
    const int blocks = depth / block;
    int number = field(data, depth * Weights::bits / 8, row, k);
    if (is_signed && number > 127) number -= 256;
    const int z = zeros_apart ? field(zeros, zero_row(blocks), row, k / block) : zero;
    const double exact =
        (number - z) * static_cast<double>(widen(scales[static_cast<std::size_t>(row * blocks + k / block)]));
    return static_cast<double>(widen(narrow<T>(static_cast<float>(exact))));  // weights are of type T
  }
};

template <class T, class Weights> void check_stored(int block, int zero, bool zeros_apart, bool is_signed) {
  constexpr int cols = 24, depth = 6 * 128;
  const stored<T, Weights> s(cols, depth, block, zero, zeros_apart, is_signed);
  const auto value = [&](int j, int k) { return s.value(block, j, k); };
  check<T, 1, 1, 3, 2>(s.weights(block), 5, cols, depth, value);
  // with scales that lines bring: as many words as their numbers have
  constexpr int in_line = 8 * Weights::run, words = in_line / (2 * Weights::block);
  if constexpr (words != 0 && !Weights::zeros_apart)
    check_staged<T, staged_lines{2, 3, 3, 8, words}>(s.weights(block), 5, cols, depth, 2, value);
  // and written out
  std::vector<T> wide(static_cast<std::size_t>(cols * depth));
  run_grid((cols * depth / Weights::run + 255) / 256, 1, 256, 0,
           [&](char*) { widen_numbers<T>(s.weights(block), wide.data(), cols, depth); });
  for (int j = 0; j < cols; ++j)
    for (int k = 0; k < depth; ++k)
      ASSERT_EQ(static_cast<double>(widen(wide[static_cast<std::size_t>(j * depth + k)])), value(j, k))
          << j << " " << k;
}

// Every finite float of eight bits, by the conversions that the rest of kiln has.
template <class T, class Code, class Weights> void check_float8_numbers(int block) {
  constexpr int cols = 24, depth = 256;
  std::vector<unsigned char> data(cols * depth);
  const auto number = [](unsigned char code) {
    Code c;
    c.bits = code;
    return static_cast<double>(static_cast<float>(c));
  };
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<unsigned char>(i * 37 + i / 256);
    if (const double x = number(data[i]); !(x - x == 0)) data[i] = 1;  // the least denormal
  }
  std::vector<T> scales = random_values<T>(static_cast<std::size_t>(cols * depth / block), 6);
  for (T& x : scales) x = narrow<T>(widen(x) / 256 + 1.0f / 1024);
  Weights w;
  static_cast<stored_argument&>(w) = {data.data(), depth, scales.data(), nullptr, depth / block, 0, 0};
  const auto value = [&](int j, int k) {
    const auto at = static_cast<std::size_t>(j * depth + k);
    const double exact = number(data[at]) * static_cast<double>(widen(scales[at / static_cast<std::size_t>(block)]));
    return static_cast<double>(widen(narrow<T>(static_cast<float>(exact))));
  };
  std::vector<T> wide(cols * depth);
  run_grid(cols * depth / Weights::run / 256 + 1, 1, 256, 0,
           [&](char*) { widen_numbers<T>(w, wide.data(), cols, depth); });
  for (int j = 0; j < cols; ++j)
    for (int k = 0; k < depth; ++k)
      ASSERT_EQ(static_cast<double>(widen(wide[static_cast<std::size_t>(j * depth + k)])), value(j, k))
          << j << " " << k;
}
TEST(device_few_rows, floats_of_eight_bits) {
  check_float8_numbers<f16, kiln::float8_e4m3fn, float8_numbers<f16, 256, false>>(256);
  check_float8_numbers<f16, kiln::float8_e5m2, float8_numbers<f16, 32, true>>(32);
  check_float8_numbers<bf16, kiln::float8_e4m3fn, float8_numbers<bf16, 64, false>>(64);
  check_float8_numbers<bf16, kiln::float8_e5m2, float8_numbers<bf16, 16, true>>(16);
}

// Both factors are such floats; those that are neither infinite nor NaN keep their values, the others stay what they
// are.
template <class F, int Atoms, int Tiles, int Warps, int Ahead> void check_two_of_short(int rows, int cols, int depth) {
  std::vector<F> b(static_cast<std::size_t>(cols * depth));
  for (std::size_t i = 0; i < b.size(); ++i) {
    b[i].bits = static_cast<unsigned char>(i * 37 + i / 256);
    if (const float x = static_cast<float>(b[i]); !(std::abs(x) <= 8)) b[i].bits = 1;
  }
  const plain_float8<F> weights{{b.data(), depth, nullptr, nullptr, 0, 0, 0}};
  check<f16, Atoms, Tiles, Warps, Ahead, F>(weights, rows, cols, depth, [&](int j, int k) {
    return static_cast<double>(static_cast<float>(b[static_cast<std::size_t>(j * depth + k)]));
  });
}
TEST(device_few_rows, products_of_floats_of_eight_bits) {
  check_two_of_short<kiln::float8_e4m3fn, 1, 1, 4, 2>(7, 40, 592);
  check_two_of_short<kiln::float8_e5m2, 2, 1, 2, 4>(13, 24, 144);
  check_two_of_short<kiln::float8_e4m3fn, 4, 2, 4, 1>(29, 72, 1040);
}

TEST(device_few_rows, numbers_of_four_bits) {
  check_stored<f16, nibbles<f16, 32, false>>(32, 8, false, false);
  check_stored<f16, nibbles<f16, 128, false>>(128, 8, false, false);
  check_stored<f16, nibbles<f16, 128, true>>(128, 0, true, false);
  check_stored<bf16, nibbles<bf16, 64, true>>(64, 0, true, false);
}
// Scales down to the least that a lift allows, and one of 0: the same numbers to the bit.
template <int Lift> void check_centered(float greatest) {
  constexpr int cols = 24, depth = 5 * 128, block = 32;
  using wide = nibbles<f16, block, false>;
  stored<f16, wide> s(cols, depth, block, 8, false, false);
  const float least = Lift == 24 ? 0.0f : std::ldexp(1.0f, 10 - Lift);
  for (std::size_t i = 0; i < s.scales.size(); ++i) {
    const float x = widen(s.scales[i]) * 16 * greatest;
    s.scales[i] = narrow<f16>(std::copysign(std::max(std::abs(x), least), x));
  }
  s.scales[3] = f16{0};
  centered_nibbles<block, Lift> w;
  static_cast<stored_argument&>(w) = s.weights(block);
  check<f16, 1, 1, 3, 2>(w, 5, cols, depth, [&](int j, int k) { return s.value(block, j, k); });
  check<f16, 2, 2, 2, 1>(w, 11, cols, depth, [&](int j, int k) { return s.value(block, j, k); });
  check_staged<f16, staged_lines{2, 2, 2, 16, 4}>(w, 11, cols, depth, 1,
                                                  [&](int j, int k) { return s.value(block, j, k); });
  // number by number, as the others are
  for (int j = 0; j < cols; ++j)
    for (int word = 0; word < depth / 8; ++word) {
      typename decltype(w)::piece from;
      w.read(from, j, word / 4 * 32, true);
      pack<u32, 4> places{{0x00010000u, 0x00030002u, 0x00050004u, 0x00070006u}};
      w.order(places);
      for (int half = 0; half < 2; ++half) {
        u32 pairs[2];
        w.take(pairs, from, word % 4 * 2 + half);
        for (int k = 0; k < 4; ++k) {
          const int shift = k % 2 * 16, at = static_cast<int>(places.at[2 * half + k / 2] >> shift & 0xffff);
          const double number = static_cast<double>(widen(f16{static_cast<u16>(pairs[k / 2] >> shift)}) * w.unit);
          ASSERT_EQ(number, s.value(block, j, word * 8 + at)) << j << " " << word << " " << k;
        }
      }
    }
}
TEST(device_few_rows, numbers_of_four_bits_about_eight) {
  check_centered<24>(0.003f);
  check_centered<20>(0.06f);
  check_centered<16>(0.9f);
  check_centered<8>(250.0f);
}
TEST(device_few_rows, numbers_of_eight_bits) {
  check_stored<f16, byte_numbers<f16, 32, false, true>>(32, 0, false, true);
  check_stored<f16, byte_numbers<f16, 16, true, false>>(16, 0, true, false);
  check_stored<bf16, byte_numbers<bf16, 32, false, true>>(32, -3, false, true);
}

}  // namespace
