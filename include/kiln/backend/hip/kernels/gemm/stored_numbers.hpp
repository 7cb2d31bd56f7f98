#pragma once
#include "kiln/backend/hip/kernels/gemm/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/platform.hpp"

// Constant weights as they are stored, for products that unpack them in registers. A weight's row is a column of the
// product; its depth is contiguous. A lane's piece is 16 bytes of a row: `run` numbers.

namespace kiln::gpu {

/// 16-bit floats as they are.
template <class T> struct plain_numbers : stored_argument {
  static constexpr int run = 8, block = 0;  // of numbers that share a scale
  using piece = pack<u32, 4>;
  static KILN_FN plain_numbers of(const matrix_argument<T>& m) {
    return {{m.base, m.row_step * static_cast<i64>(sizeof(T)), nullptr, nullptr, 0, 0, 0}};
  }
  /// What numbers mean over what `take` gives, and operands in the order that it has pairs in, of eight along the
  /// depth.
  static constexpr float unit = 1;
  static KILN_FN void order(pack<u32, 4>&) {}
  /// Where number `at` of a row lies.
  KILN_FN const char* at(int row, int at) const { return static_cast<const char*>(data) + row * row_bytes + at * 2; }
  /// A piece of these bytes, with a scale where there is one.
  KILN_FN void set(piece& to, const pack<u32, 4>& numbers, u32) const { to = numbers; }
  KILN_FN void read(piece& to, int row, int k, bool inside) const {
    to = {};
    if (inside) read_once(to.at, at(row, k));
  }
  /// Numbers 4 i to 4 i + 3 of a piece as pairs.
  KILN_FN void take(u32 (&to)[2], const piece& from, int i) const {
    to[0] = from.at[2 * i], to[1] = from.at[2 * i + 1];
  }
};

/// Floats of eight bits as they are, pairs of which are f16 of the same values.
template <class F> struct plain_float8 : stored_argument {
  static constexpr int run = 16;
  using piece = pack<u32, 4>;
  static KILN_FN plain_float8 of(const matrix_argument<F>& m) {
    return {{m.base, m.row_step, nullptr, nullptr, 0, 0, 0}};
  }
  static constexpr float unit = 1;
  static KILN_FN void order(pack<u32, 4>&) {}
  KILN_FN void read(piece& to, int row, int at, bool inside) const {
    to = {};
    if (inside) read_once(to.at, static_cast<const char*>(data) + row * row_bytes + at);
  }
  KILN_FN void take(u32 (&to)[2], const piece& from, int i) const {
    to[0] = two_halves<F>(from.at[i]), to[1] = two_halves<F>(from.at[i] >> 16);
  }
};

/// What numbers in blocks have in common: (number - zero) * scale, with a scale of type T for each `Block` of them
/// along the depth. Zero points are one for all, or with `Zeros` one a block, packed as the numbers are.
template <class T, int Run, int Block, bool Zeros> struct numbers_in_blocks : stored_argument {
  static_assert(Block % Run == 0);
  static constexpr int run = Run, bits = 128 / Run, block = Block;
  static constexpr bool zeros_apart = Zeros;
  static constexpr float unit = 1;
  static KILN_FN void order(pack<u32, 4>&) {}
  struct piece {
    u32 at[4];
    u32 scale;  // twice
    u32 zero;
  };
  KILN_FN const char* at(int row, int at) const {
    return static_cast<const char*>(this->data) + row * this->row_bytes + at / 8 * bits;
  }
  KILN_FN const u16* scale_at(int row, int at) const {
    return static_cast<const u16*>(this->scales) + static_cast<i64>(row) * this->scale_row + at / Block;
  }
  KILN_FN void set(piece& to, const pack<u32, 4>& numbers, u32 scale) const {
    static_assert(!Zeros);
    KILN_UNROLL
    for (int i = 0; i < 4; ++i) to.at[i] = numbers.at[i];
    set_scale(to, scale);
  }
  KILN_FN void read(piece& to, int row, int k, bool inside) const {
    to = {};
    if (!inside) return;
    read_once(to.at, at(row, k));
    set_scale(to, *scale_at(row, k));
    if constexpr (Zeros) {
      constexpr int each = 8 / bits;
      const int in = k / Block;
      const auto* from = static_cast<const unsigned char*>(this->zeros) + static_cast<i64>(row) * this->zero_row;
      to.zero = static_cast<u32>(from[in / each] >> in % each * bits) & ((1u << bits) - 1);
    }
  }

 private:
  KILN_FN void set_scale(piece& to, u32 scale) const {
    to.scale = scale | scale << 16;
    to.zero = static_cast<u32>(this->zero);
  }
};

/// Unsigned numbers of four bits, the lower half of a byte first.
template <class T, int Block, bool Zeros> struct nibbles : numbers_in_blocks<T, 32, Block, Zeros> {
  using piece = typename numbers_in_blocks<T, 32, Block, Zeros>::piece;
  /// Numbers 4 i to 4 i + 3 of a piece as pairs.
  KILN_FN void take(u32 (&to)[2], const piece& from, int i) const {
    // 0x6400 is 1024 as f16, 0x4300 is 128 as bf16: a number of four bits in their lowest bits adds its value
    constexpr bool half = elementary::same<T, f16>;
    constexpr u32 lifts = half ? 0x64006400u : 0x43004300u, ones = half ? 0x3c003c00u : 0x3f803f80u;
    const float less = (half ? -1024.0f : -128.0f) - static_cast<float>(from.zero);
    const u32 both = two_narrow<T>(less, less), word = from.at[i / 2];
    KILN_UNROLL
    for (int k = 0; k < 2; ++k) {
      const int byte = i % 2 * 2 + k;
      const u32 lifted = (pick_bytes(word, word >> 4, 0x4400 + byte * 0x1111) & 0x000f000fu) | lifts;
      to[k] = multiply_pairs<T>(fma_pairs<T>(lifted, ones, both), from.scale);
    }
  }
};

/// The same with zero point 8 for products in f16, of scales of at most 65504 / 2^Lift: a number of four bits is
/// already one of f16, of a denormal's bits, that a multiplication by scale * 2^Lift moves to `1 / unit` of what it
/// means. That is rounded as what it means would be where scales other than 0 are at least 2^(10 - Lift), so that it
/// is no denormal, and where Lift is 24, so that both are the same.
template <int Block, int Lift> struct centered_nibbles : numbers_in_blocks<f16, 32, Block, false> {
  using piece = typename numbers_in_blocks<f16, 32, Block, false>::piece;
  static_assert(Lift >= 8 && Lift <= 24);
  static constexpr float unit = static_cast<float>(1 << (24 - Lift));
  /// 2^n, twice.
  static constexpr u32 power(int n) { return static_cast<u32>(n + 15) << 10 | static_cast<u32>(n + 15) << 26; }
  /// Numbers i and i + 4 stand in the halves of a word.
  static KILN_FN void order(pack<u32, 4>& x) {
    const pack<u32, 4> in = x;
    x.at[0] = pick_bytes(in.at[0], in.at[2], 0x5410), x.at[1] = pick_bytes(in.at[0], in.at[2], 0x7632);
    x.at[2] = pick_bytes(in.at[1], in.at[3], 0x5410), x.at[3] = pick_bytes(in.at[1], in.at[3], 0x7632);
  }
  KILN_FN void take(u32 (&to)[2], const piece& from, int i) const {
    const u32 lifted = multiply_pairs<f16>(multiply_pairs<f16>(from.scale, power(Lift / 2)), power(Lift - Lift / 2));
    const u32 less = multiply_pairs<f16>(from.scale, power(Lift - 21) | 0x80008000u);
    const u32 word = from.at[i / 2] >> i % 2 * 8;
    to[0] = fma_pairs<f16>(word & 0x000f000fu, lifted, less);
    to[1] = fma_pairs<f16>(word & 0x00f000f0u, multiply_pairs<f16>(lifted, power(-4)), less);
  }
};

/// Numbers of eight bits; `zero` of signed ones has 128 added.
template <class T, int Block, bool Zeros, bool Signed> struct byte_numbers : numbers_in_blocks<T, 16, Block, Zeros> {
  using piece = typename numbers_in_blocks<T, 16, Block, Zeros>::piece;
  KILN_FN void take(u32 (&to)[2], const piece& from, int i) const {
    const u32 word = Signed ? from.at[i] ^ 0x80808080u : from.at[i];
    const float zero = static_cast<float>(from.zero);
    if constexpr (elementary::same<T, f16>) {
      const u32 less = two_narrow<T>(-1024.0f - zero, -1024.0f - zero);
      to[0] = multiply_pairs<T>(fma_pairs<T>(pick_bytes(word, 0x64646464u, 0x4140), 0x3c003c00u, less), from.scale);
      to[1] = multiply_pairs<T>(fma_pairs<T>(pick_bytes(word, 0x64646464u, 0x4342), 0x3c003c00u, less), from.scale);
    } else {  // 0x4b000000 is 2^23 as float
      float x[4];
      KILN_UNROLL
      for (int k = 0; k < 4; ++k) x[k] = bits_as_float(pick_bytes(word, 0x4b000000u, 0x7540 + k)) - 8388608.0f - zero;
      to[0] = multiply_pairs<T>(two_narrow<T>(x[0], x[1]), from.scale);
      to[1] = multiply_pairs<T>(two_narrow<T>(x[2], x[3]), from.scale);
    }
  }
};

/// Floats of eight bits without infinities and NaNs: f8e5m2, which is the upper half of f16, or f8e4m3fn.
template <class T, int Block, bool E5m2> struct float8_numbers : numbers_in_blocks<T, 16, Block, false> {
  using piece = typename numbers_in_blocks<T, 16, Block, false>::piece;
  KILN_FN void take(u32 (&to)[2], const piece& from, int i) const {
    KILN_UNROLL
    for (int k = 0; k < 2; ++k) {
      u32 halves = pick_bytes(from.at[i], 0, k == 0 ? 0x1404 : 0x3424);
      // the exponent of f8e4m3fn is a bit shorter, and its bias 8 less
      if constexpr (!E5m2)
        halves = multiply_pairs<f16>((halves & 0x80008000u) | (halves & 0x7f007f00u) >> 1, 0x5c005c00u);
      if constexpr (!elementary::same<T, f16>)
        halves = two_narrow<T>(float_of_half(static_cast<u16>(halves)), float_of_half(static_cast<u16>(halves >> 16)));
      to[k] = multiply_pairs<T>(halves, from.scale);
    }
  }
};

/// Writes rows of stored numbers out as what they mean, a row's depth contiguous; a thread writes a piece.
template <class T, class Weights> KILN_FN void widen_numbers(const Weights& weights, T* to, int rows, int depth) {
  constexpr int threads = 256;
  const int pieces = depth / Weights::run;
  const i64 at = static_cast<i64>(block_x()) * threads + thread_index();
  if (at >= static_cast<i64>(rows) * pieces) return;
  const int row = static_cast<int>(at / pieces), column = static_cast<int>(at % pieces) * Weights::run;
  typename Weights::piece from;
  weights.read(from, row, column, true);
  auto* out = reinterpret_cast<pack<u32, 4>*>(to + static_cast<i64>(row) * depth + column);
  KILN_UNROLL
  for (int i = 0; i < Weights::run / 4; i += 2) {
    u32 low[2], high[2];
    weights.take(low, from, i);
    weights.take(high, from, i + 1);
    out[i / 2] = {{low[0], low[1], high[0], high[1]}};
  }
}

}  // namespace kiln::gpu
