#pragma once

#include <bit>

#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/quantized/problem.hpp"

namespace kiln::kernels {

/// Where a row of the left operand goes: lines of `line` bytes, whole ones to a block, each `line_step` after the one
/// before, and the parts of its elements `part_step` apart; the scale and the sum of each block, `each` apart.
template <class Sum> struct row_places {
  std::byte* to = nullptr;
  std::int64_t line = 0;
  std::ptrdiff_t line_step = 0, part_step = 0;
  float* scales = nullptr;
  Sum* sums = nullptr;  ///< or null where a row of floats needs none
  std::ptrdiff_t each = 1;
};

/// Sixteen numbers of a row that meet weights from k on, zeros after the depth; k is a multiple of 16.
KILN_FN vec<float, 16> sixteen_of(const quantized_form& f, const float* x, std::int64_t k) {
  using F = vec<float, 16>;
  if (f.split_nibbles) {  // rows are of whole blocks
    const float* const low = x + k - k % 32 / 2;
    return __builtin_shufflevector(load<vec<float, 8>>(low), load<vec<float, 8>>(low + 16), 0, 8, 1, 9, 2, 10, 3, 11, 4,
                                   12, 5, 13, 6, 14, 7, 15);
  }
  if (k + 16 <= f.k) return load<F>(x + k);
  F v{};
  if (k < f.k) std::memcpy(&v, x + k, static_cast<std::size_t>(f.k - k) * 4);
  return v;
}

/// The sum of a block of a row.
inline float sum_of_block(const quantized_form& f, const float* x, std::int64_t b) {
  double sum = 0;
  for (std::int64_t k = b * f.block; k < std::min(f.k, (b + 1) * f.block); ++k) sum += static_cast<double>(x[k]);
  return static_cast<float>(sum);
}

/// The lanes of a vector as one number, in pairs.
template <class Combine> KILN_FN std::int32_t combined_lanes(vec<std::int32_t, 16> v, Combine&& combine) {
  const vec<std::int32_t, 8> eight = combine(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                                             __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
  const vec<std::int32_t, 4> four =
      combine(__builtin_shufflevector(eight, eight, 0, 1, 2, 3), __builtin_shufflevector(eight, eight, 4, 5, 6, 7));
  const vec<std::int32_t, 4> two = combine(four, __builtin_shufflevector(four, four, 2, 3, 2, 3));
  return combine(two, __builtin_shufflevector(two, two, 1, 1, 1, 1))[0];
}

/// The lowest byte of each of sixteen lanes.
template <class I> KILN_FN vec<std::int8_t, 16> lowest_bytes(I v) {
#if KILN_HAS_MXCSR
  if constexpr (native_bytes == 64) {
    vec<std::int8_t, 16> bytes;
    asm("vpmovdb %1, %0" : "=v"(bytes) : "v"(v));
    return bytes;
  }
#endif
  return convert<vec<std::int8_t, 16>>(v);
}

/// Rounds one row to bytes: in each block by its greatest magnitude, in the order of `byte_rows`. A block with a NaN
/// has a scale of NaN.
template <int Bits, class Sum> void round_row(const quantized_form& f, const float* x, const row_places<Sum>& at) {
  constexpr int lanes = 16;
  using I = vec<std::int32_t, lanes>;
  using B = vec<std::int8_t, lanes>;
  auto* line = reinterpret_cast<std::int8_t*>(at.to);
  for (std::int64_t b = 0; b < f.blocks(); ++b) {
    const std::int64_t first = b * f.block, last = first + f.block;
    I greatest{};  // magnitudes compare as their bits do, and NaN is above all
    for (std::int64_t k = first; k < last; k += lanes) {
      const I magnitude = (I)sixteen_of(f, x, k) & 0x7fffffff;
      greatest = magnitude > greatest ? magnitude : greatest;
    }
    const auto larger = [](auto a, auto c) __attribute__((always_inline)) { return a > c ? a : c; };
    const auto magnitude = std::bit_cast<float>(combined_lanes(greatest, larger));
    at.scales[b * at.each] = magnitude / 127;
    // a number below has no inverse; a block of such is zero
    const float inverse = magnitude <= 1e-36F ? 0.0F : 127 / magnitude;
    I sum{};
    for (std::int64_t l = first; l < last; l += at.line, line += at.line_step)
      for (std::int64_t k = l; k < l + at.line; k += lanes) {
        constexpr float round_to_integer = 0x1.8p23F;
        const I q = (I)(sixteen_of(f, x, k) * inverse + round_to_integer) << 24 >> 24;
        sum += q;
        const B bytes = lowest_bytes(q);
        B ordered;
        if constexpr (Bits == 8)
          ordered = bytes;
        else if constexpr (Bits == 4)
          ordered = __builtin_shufflevector(bytes, bytes, 0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
        else
          ordered = __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        store(line + (k - l), ordered);
      }
    at.sums[b * at.each] = static_cast<Sum>(combined_lanes(
        sum, [](auto a, auto c) __attribute__((always_inline)) { return a + c; }));
  }
}

/// Splits one row into three bf16 each: truncated, the rest truncated, and what remains, exactly. Infinities and NaN
/// are the first part alone. Two halves of the numbers that meet a word of `Bits` bits each are paired.
template <int Bits> void split_row(const quantized_form& f, const float* x, const row_places<float>& at) {
  using F = vec<float, 16>;
  using U = vec<std::uint32_t, 16>;
  constexpr std::uint32_t upper = 0xffff0000u, infinity = 0x7f800000u;
  constexpr int each = 32 / Bits, half = each / 2;
  const auto paired = []<int Second, int... T>(F low, F high, std::integer_sequence<int, Second>,
                                               std::integer_sequence<int, T...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(low, high, (T / half * each + T % half + Second * half)...);
  };
  constexpr std::make_integer_sequence<int, 16> lanes;
  std::byte* line = at.to;
  const std::int64_t depth = at.line / 2;
  for (std::int64_t k = 0; k < f.depth(); k += depth, line += at.line_step) {
    const F low = sixteen_of(f, x, k), high = depth > 16 ? sixteen_of(f, x, k + 16) : F{};
    std::byte* to = line;
    const auto put = [&](U a, U b) __attribute__((always_inline)) {
      const U both = a >> 16 | (b & upper);
      std::memcpy(to, &both, static_cast<std::size_t>(at.line));
      to += at.part_step;
    };
    F number[2] = {paired(low, high, std::integer_sequence<int, 0>(), lanes),
                   paired(low, high, std::integer_sequence<int, 1>(), lanes)};
    U first[2];
    for (int i = 0; i < 2; ++i) {
      const U magnitude = (U)number[i] & 0x7fffffffu;
      first[i] = (U)number[i] | (magnitude > infinity ? U{} + 0x400000u : U{});  // NaN stays one
      const F rest = number[i] - (F)(first[i] & upper);
      number[i] = magnitude < infinity ? rest : F{};
    }
    put(first[0], first[1]);
    put((U)number[0], (U)number[1]);
    for (F& n : number) n -= (F)((U)n & upper);
    put((U)number[0], (U)number[1]);
  }
  for (std::int64_t b = 0; b < f.blocks() && at.sums; ++b) at.sums[b * at.each] = sum_of_block(f, x, b);
}

/// Copies one row to whole blocks, and sums up its blocks.
inline void copy_row(const quantized_form& f, const float* x, float* to, float* sums) {
  if (to && f.split_nibbles) {
    for (std::int64_t k = 0; k < f.k; k += 16) store(to + k, sixteen_of(f, x, k));
  } else if (to) {
    std::copy_n(x, f.k, to);
    std::fill(to + f.k, to + f.depth(), 0.0F);
  }
  for (std::int64_t b = 0; b < f.blocks() && sums; ++b) sums[b] = sum_of_block(f, x, b);
}

}  // namespace kiln::kernels
