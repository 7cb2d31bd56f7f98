#pragma once

#include <cstring>

#include "kiln/kernel/quantized/problem.hpp"
#include "kiln/kernel/simd/vector.hpp"

namespace kiln::kernels {

namespace detail {

/// Lanes 0, 2, ... or 1, 3, ... of each half of 128 bits, those of `a` and `b` in turns: of two lanes the lower ones or
/// the upper ones, of four the lower two or the upper two.
template <bool Upper, class V, int... L> KILN_FN V persistent(V a, V b, std::integer_sequence<int, L...>) {
  constexpr int lanes = sizeof...(L), part = 16 / (sizeof(V) / lanes);
  return __builtin_shufflevector(a, b, (L / part * part + L % part / 2 + (Upper ? part / 2 : 0) + L % 2 * lanes)...);
}
template <bool Upper, class V> KILN_FN V persistent(V a, V b) {
  return persistent<Upper>(a, b, std::make_integer_sequence<int, sizeof(V) / sizeof(a[0])>());
}

/// Four words of each of some rows `step` bytes apart, a part of 128 bits each.
template <class V> KILN_FN V words_of_rows(const std::byte* first, std::ptrdiff_t step) {
  using four [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = std::uint32_t;
  V all{};
#if KILN_HAS_MXCSR
  // a part that is inserted from memory takes no permutation, unlike those that the compiler makes of vectors
  if constexpr (sizeof(V) == 64) {
    const auto put = [&](std::ptrdiff_t from, auto part) __attribute__((always_inline)) {
      asm("vinserti32x4 %3, %2, %1, %0"
          : "=v"(all)
          : "v"(all), "m"(*reinterpret_cast<const four*>(first + from)), "i"(decltype(part)::value));
    };
    asm("vmovdqu32 %1, %x0" : "=v"(all) : "m"(*reinterpret_cast<const four*>(first)));
    put(step, std::integral_constant<int, 1>());
    put(2 * step, std::integral_constant<int, 2>());
    put(3 * step, std::integral_constant<int, 3>());
    return all;
  }
#endif
  for (int part = 0; part < int(sizeof(V)) / 16; ++part)
    std::memcpy(reinterpret_cast<std::byte*>(&all) + part * 16, first + part * step, sizeof(four));
  return all;
}

/// Keeps what the compiler would make of products by constants from one round to the next, in more registers than
/// there are.
KILN_FN std::ptrdiff_t opaque(std::ptrdiff_t x) {
  asm("" : "+r"(x));
  return x;
}

/// What makes signed bytes unsigned: adding half their range turns the highest bit.
constexpr std::uint32_t flip_of(std::int64_t block_words) { return block_words == 8 ? 0x80808080u : 0; }

/// One block of a vector's columns, rows `row` bytes apart: its words and scales.
template <int Words>
KILN_FN void unpack_block(const std::byte* block, std::ptrdiff_t row_bytes, std::int64_t width, std::uint32_t* words,
                          std::uint16_t* scales) {
  using U = native_vec<std::uint32_t>;
  using P = native_vec<std::uint64_t>;
  constexpr int parts = native_lanes<float> / 4;
  // of each four adjacent rows, one in each of four vectors
  const std::ptrdiff_t row = opaque(row_bytes), four = 4 * row;
#pragma GCC unroll 2
  for (int q = 0; q < Words; q += 4) {
    const std::byte* const at = block + 2 + q * 4;
    const U a = words_of_rows<U>(at, four), b = words_of_rows<U>(at + row, four);
    const U c = words_of_rows<U>(at + 2 * row, four), d = words_of_rows<U>(at + 3 * row, four);
    const P low = (P)persistent<false>(a, b), low2 = (P)persistent<false>(c, d);
    const P high = (P)persistent<true>(a, b), high2 = (P)persistent<true>(c, d);
    store(words + q * width, (U)persistent<false>(low, low2) ^ flip_of(Words));
    store(words + (q + 1) * width, (U)persistent<true>(low, low2) ^ flip_of(Words));
    store(words + (q + 2) * width, (U)persistent<false>(high, high2) ^ flip_of(Words));
    store(words + (q + 3) * width, (U)persistent<true>(high, high2) ^ flip_of(Words));
  }
#pragma GCC unroll 4
  for (int part = 0; part < parts; ++part) {
    const std::byte* const at = block + part * four;
    std::memcpy(scales + part * 4, at, 2);
    std::memcpy(scales + part * 4 + 1, at + row, 2);
    std::memcpy(scales + part * 4 + 2, at + 2 * row, 2);
    std::memcpy(scales + part * 4 + 3, at + 3 * row, 2);
  }
}

/// The same of a vector's first `cols` columns; the others become zero.
inline void unpack_some(const std::byte* block, std::ptrdiff_t row_bytes, int cols, std::int64_t block_words,
                        std::int64_t width, std::uint32_t* words, std::uint16_t* scales) {
  for (int i = 0; i < native_lanes<float>; ++i, block += row_bytes) {
    scales[i] = 0;
    if (i < cols) std::memcpy(scales + i, block, 2);
    for (std::int64_t w = 0; w < block_words; ++w) {
      std::uint32_t word = 0;
      if (i < cols) std::memcpy(&word, block + 2 + w * 4, 4), word ^= flip_of(block_words);
      words[w * width + i] = word;
    }
  }
}

}  // namespace detail

/// Packs columns [col, col + cols) of weights that are stored in rows of blocks (`quantized_source::rows`): a panel of
/// `width` columns.
[[gnu::noinline]] inline void unpack_rows(const quantized_form& f, const std::byte* stored, std::int64_t col,
                                          std::int64_t cols, std::int64_t width, std::uint32_t* words,
                                          std::uint16_t* scales) {
  constexpr int lanes = native_lanes<float>;
  const std::int64_t blocks = f.blocks(), block_words = f.words(), each = f.block_bytes(), row = blocks * each;
  for (std::int64_t j = 0; j < width; j += lanes) {
    const std::byte* block = stored + (col + j) * row;
    std::uint32_t* to = words + j;
    std::uint16_t* scale = scales + j;
    for (std::int64_t b = 0; b < blocks; ++b, block += each, to += block_words * width, scale += width) {
      if (j + lanes > cols)
        detail::unpack_some(block, row, static_cast<int>(cols - j), block_words, width, to, scale);
      else if (block_words == 4)
        detail::unpack_block<4>(block, row, width, to, scale);
      else
        detail::unpack_block<8>(block, row, width, to, scale);
    }
  }
}

}  // namespace kiln::kernels
