#pragma once

#include <algorithm>
#include <cstring>

#include "kiln/kernel/int8/image.hpp"
#include "kiln/kernel/int8/requantize.hpp"
#include "kiln/kernel/int8/tile.hpp"
#include "kiln/kernel/simd/transpose_square.hpp"

namespace kiln::kernels {

/// What unsigned bytes lose where they become a right operand, which is signed.
inline constexpr std::int32_t unsigned_right_offset = 128;

/// Some columns of a right operand B[k, cols] of bytes as they lie; strides in bytes.
struct bytes_of_panel {
  const std::byte* at = nullptr;
  std::ptrdiff_t row = 0, col = 1;
  std::int64_t k = 0, cols = 0;
  bool is_signed = false;
};

/// Bytes as the right operands of one register: `flip` makes unsigned ones signed.
template <class Machine>
KILN_FN native_vec<std::int32_t> right_words(
    const vec<std::uint8_t, Machine::depth * native_lanes<std::int32_t>>& bytes, std::uint8_t flip) {
  using stored = vec<std::int8_t, Machine::depth * native_lanes<std::int32_t>>;
  const auto flipped = (stored)(bytes ^ flip);
  if constexpr (sizeof(typename Machine::right) == 1)
    return (native_vec<std::int32_t>)flipped;
  else
    return (native_vec<std::int32_t>)convert<native_vec<typename Machine::right>>(flipped);
}

/// The lanes of one word for adjacent columns from the bytes of its `depth` rows.
template <class Machine, class Row> KILN_FN native_vec<std::int32_t> interleaved_words(Row&& row, std::uint8_t flip) {
  using V = native_vec<std::int32_t>;
  using bytes = vec<std::uint8_t, native_lanes<std::int32_t>>;
  const V low = broadcast<V>(sizeof(typename Machine::right) == 1 ? 0xff : 0xffff);
  constexpr int bits = 32 / Machine::depth;
  V word{};
#pragma GCC unroll 4
  for (int d = 0; d < Machine::depth; ++d) {
    const bytes flipped = row(d) ^ flip;
    const V wide = widen_bytes<V, std::int8_t>((vec<std::int8_t, native_lanes<std::int32_t>>)flipped);
    word |= d + 1 == Machine::depth ? wide << d * bits : (wide & low) << d * bits;
  }
  return word;
}

/// Packs a panel of `width` columns (`place_in_panel`), less `unsigned_right_offset` where they are
/// unsigned; missing columns and rows are zero. Columns or rows whose bytes are adjacent move in whole registers.
template <class Machine> void pack_byte_panel(std::int32_t* to, std::int64_t width, const bytes_of_panel& from) {
  constexpr int lanes = native_lanes<std::int32_t>, depth = Machine::depth;
  using V = native_vec<std::int32_t>;
  using column_bytes = vec<std::uint8_t, depth * lanes>;
  using row_bytes = vec<std::uint8_t, lanes>;
  const std::uint8_t flip = from.is_signed ? 0 : 0x80;
  const auto* const at = reinterpret_cast<const std::uint8_t*>(from.at);
  const std::int64_t words = integer_words<Machine>(from.k);
  if (from.col == 1 && from.row != 1) {
    std::uint8_t rest[depth][lanes];
    for (std::int64_t w = 0; w < words; ++w)
      for (std::int64_t j = 0; j < width; j += lanes) {
        const std::uint8_t* row[depth];
        const std::int64_t cols = std::min<std::int64_t>(lanes, from.cols - j);
        for (int d = 0; d < depth; ++d) {
          const std::int64_t k = w * depth + d;
          row[d] = at + k * from.row + j;
          if (k < from.k && cols == lanes) continue;
          std::memset(rest[d], flip, lanes);
          if (k < from.k && cols > 0) std::memcpy(rest[d], row[d], static_cast<std::size_t>(cols));
          row[d] = rest[d];
        }
        store(to + place_in_panel(w, j, width, words),
              interleaved_words<Machine>(
                  [&](int d) __attribute__((always_inline)) { return load<row_bytes>(row[d]); }, flip));
      }
    return;
  }
  for (std::int64_t j = 0; j < width; j += lanes)
    for (std::int64_t w = 0; w < words; w += lanes) {
      const std::int64_t k0 = w * depth, count = std::min<std::int64_t>(depth * lanes, from.k - k0);
      V row[lanes];
      for (int c = 0; c < lanes; ++c) {
        const std::uint8_t* const column = at + (j + c) * from.col + k0 * from.row;
        const bool exists = j + c < from.cols;
        if (exists && from.row == 1 && count == depth * lanes) {
          row[c] = right_words<Machine>(load<column_bytes>(column), flip);
          continue;
        }
        std::uint8_t bytes[depth * lanes];
        std::memset(bytes, flip, sizeof bytes);
        for (std::int64_t k = 0; exists && k < count; ++k) bytes[k] = column[k * from.row];
        row[c] = right_words<Machine>(load<column_bytes>(bytes), flip);
      }
      transpose_square<lanes>(row);
      for (std::int64_t i = 0; i < std::min<std::int64_t>(lanes, words - w); ++i)
        store(to + place_in_panel(w + i, j, width, words), row[i]);
    }
}

/// The left operand that is 1 everywhere.
template <class Machine> KILN_FN native_vec<std::int32_t> ones() {
  return broadcast<native_vec<std::int32_t>>(sizeof(typename Machine::left) == 1 ? 0x01010101 : 0x00010001);
}

/// `factor` times the sums of a packed panel's columns; sums of 32 bits wrap.
template <class Machine>
void sum_panel_columns(std::int32_t* to, const std::int32_t* panel, std::int64_t width, std::int64_t words,
                       std::int32_t factor) {
  using V = native_vec<std::int32_t>;
  using wrapping = native_vec<std::uint32_t>;
  for (std::int64_t j = 0; j < width; j += native_lanes<std::int32_t>) {
    V sum{};
    for (std::int64_t w = 0; w < words; ++w)
      sum = Machine::add_products(sum, ones<Machine>(), load<V>(panel + place_in_panel(w, j, width, words)));
    store(to + j, (V)((wrapping)sum * broadcast<wrapping>(static_cast<std::uint32_t>(factor))));
  }
}

/// Packs B[k, n] of any strides: column sums, then panels of one register tile's width (`place_in_panel`), in which a
/// row of lanes holds `depth` rows of B. Missing columns and rows are zero.
template <class Machine>
void pack_integers(thread_pool& pool, std::int32_t* to, const std::int8_t* from, std::ptrdiff_t row, std::ptrdiff_t col,
                   std::int64_t k, std::int64_t n) {
  constexpr std::int64_t full = register_tile<std::int32_t>::width;
  const std::int64_t columns = round_up(n, native_lanes<std::int32_t>), words = integer_words<Machine>(k);
  pool.parallel_for(ceil_div(n, full), [&](std::int64_t task, unsigned) {
    const std::int64_t first = task * full, width = panel_width<std::int32_t>(first, n);
    std::int32_t* const panel = to + columns + first * words;
    pack_byte_panel<Machine>(
        panel, width,
        {reinterpret_cast<const std::byte*>(from) + first * col, row, col, k, std::min(full, n - first), true});
    sum_panel_columns<Machine>(to + first, panel, width, words, 1);
  });
}

/// The sum of a left operand's row, as the machine holds it.
template <class Machine> std::uint32_t sum_left(const std::byte* row, std::int64_t words) {
  using V = native_vec<std::int32_t>;
  constexpr int lanes = native_lanes<std::int32_t>;
  V sum{};
  for (std::int64_t w = 0; w < words; w += lanes) {
    const int count = static_cast<int>(std::min<std::int64_t>(lanes, words - w));
    std::int32_t part[lanes] = {};
    std::memcpy(part, row + w * 4, static_cast<std::size_t>(count) * 4);
    sum = Machine::add_products(sum, load<V>(part), ones<Machine>());
  }
  std::uint32_t all = 0;
  for (int i = 0; i < lanes; ++i) all += static_cast<std::uint32_t>(sum[i]);
  return all;
}

}  // namespace kiln::kernels
