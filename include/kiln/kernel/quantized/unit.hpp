#pragma once

#include <bit>

#include "kiln/kernel/quantized/round.hpp"
#include "kiln/kernel/quantized/tile.hpp"
#include "kiln/kernel/quantized/unit_tiles.hpp"
#include "kiln/runtime/own_cache.hpp"

namespace kiln::kernels {

// Several rows on the processor's matrix unit. The numbers of a vector of columns become an operand of the unit once
// for all rows, some blocks at a time, in L1. The unit's sums of each block are stored, scaled in vectors and added to
// totals, while it makes the next ones.
//
// Rows that are rounded to bytes give exact sums, and totals bit by bit as in vectors. Floats are the sum of three bf16
// (a truncated number, the rest of it truncated, and what remains, exactly); numbers of few bits are one bf16 each.

/// Numbers as the unit's right operand.
template <class Numbers, bool Bytes> class unit_numbers {
  using U = native_vec<std::uint32_t>;
  using F = native_vec<float>;
  using B = native_vec<std::uint8_t>;
  static constexpr int lanes = native_lanes<float>, bits = Numbers::bits, each = 32 / bits, half = each / 2;

 public:
  explicit unit_numbers(const quantized_columns& w) : decode_(w) {
    uniform_ = w.zero_type == zero_format::uniform;
    const auto zero = static_cast<std::uint32_t>(uniform_ ? static_cast<std::int32_t>(w.zero) & 0xff : 0);
    zeros_ = (B)broadcast<U>(zero * 0x01010101u);
    if constexpr (!Bytes && bits <= 4) {
      std::uint16_t of[2 * lanes];
      for (unsigned i = 0; i < 2 * lanes; ++i)
        of[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(decode_(broadcast<U>(i % 16), 0)[0]) >> 16);
      std::memcpy(&table_, of, sizeof of);
    }
  }
  /// Blocks [b, b + count) of vector v.
  [[gnu::noinline]] void unpack(const quantized_columns& w, int v, std::int64_t b, std::int64_t count, std::byte* right,
                                float* scale, float* offset) const {
    const std::uint32_t* data = w.data + b * w.words * w.width + v * lanes;
    auto* to = reinterpret_cast<std::uint32_t*>(right);
    for (std::int64_t i = 0; i < count * w.words; ++i, data += w.width) {
      const U stored = load<U>(data);
      if constexpr (Bytes) {
        constexpr std::uint32_t mask = bits == 8 ? 0xffffffffu : bits == 4 ? 0x0f0f0f0fu : 0x03030303u;
#pragma GCC unroll 4
        for (int f = 0; f < 8 / bits; ++f, to += lanes) store(to, (U)((B)((stored >> (f * bits)) & mask) - zeros_));
      } else {
#pragma GCC unroll 8
        for (int f = 0; f < half; ++f, to += lanes) store(to, pairs(stored, f));
      }
    }
    const float center = Bytes ? 0 : Numbers::center(w);
    for (std::int64_t i = 0; i < count; ++i) {
      store(scale + i * lanes, w.scale(b + i, v));
      if (!uniform_) store(offset + i * lanes, w.zero_points(b + i, v) - broadcast<F>(center));
    }
  }

 private:
  // Fields f and f + half of each word.
  KILN_FN U pairs(U words, int f) const {
#if KILN_HAS_MXCSR
    if constexpr (bits <= 4 && native_bytes == 64) {  // the instruction reads the lowest 5 bits of an index
      using H = native_vec<std::uint16_t>;
      const U at = (U)((H)words >> static_cast<std::uint16_t>(f * bits));
      U value;
      asm("vpermw %2, %1, %0" : "=v"(value) : "v"(at), "v"(table_));
      return value;
    }
#endif
    return (U)decode_(words, f) >> 16 | ((U)decode_(words, f + half) & 0xffff0000u);
  }

  Numbers decode_;
  bool uniform_ = false;
  B zeros_{};
  U table_{};
};

/// A product on the unit; its left operand in scratch memory.
template <class Numbers, bool Bytes> class unit_product {
 public:
  unit_product(thread_pool& pool, const quantized_problem& p, std::byte* scratch)
      : p_(p), a_(p), cut_(a_), at_(p, pool.size()), scratch_(scratch) {
    pool.parallel_for(a_.tiles * a_.tile_rows, [&](std::int64_t r, unsigned) { prepare(r); });
  }
  std::int64_t tiles() const { return a_.tiles; }
  std::int64_t tile_rows() const { return a_.tile_rows; }
  /// Tiles that half of a processor's own cache holds, in whole groups.
  std::int64_t near_tiles() const {
    return std::max<std::int64_t>(1, own_cache_bytes() / 2 / (cut_.group * a_.tile_bytes())) * cut_.group;
  }

  /// Some tiles of rows and some columns of one panel; `done(row, count)` is called for rows whose sums are stored.
  template <class Done>
  void multiply(std::int64_t tile0, std::int64_t tiles, std::int64_t col0, std::int64_t cols, unsigned worker,
                Done&& done) const {
    const tile_shape sums{a_.tile_rows, 64}, right{a_.line / 4, 64}, left{a_.tile_rows, a_.line};
    const shaped_unit_session session({sums, sums, sums, sums, right, right, left, left});
    const quantized_columns w(p_.form, p_.b, col0);
    const bool uniform = w.zero_type == zero_format::uniform;
    using way = unit_way;
    const auto advance = uniform ? unit_tiles < Bytes ? way::signed_bytes : way::floats > ::find(a_.tile_rows)
                         : unit_tiles < Bytes ? way::unsigned_bytes
                                              : way::floats_with_zeros > ::find(a_.tile_rows);
    const unit_numbers<Numbers, Bytes> numbers(w);
    std::byte* const own = scratch_ + at_.workers + worker * cut_.size;
    const auto floats = [&](std::int64_t place, std::int64_t bytes) {
      return reinterpret_cast<float*>(own + place + bytes);
    };
    const int vectors = static_cast<int>(ceil_div(cols, lanes));
    for (std::int64_t t0 = tile0; t0 < tile0 + tiles; t0 += cut_.group) {
      const std::int64_t group = std::min(cut_.group, tile0 + tiles - t0);
      unit_piece before{.total = floats(cut_.totals, 0), .first = true};  // none yet
      int side = 0, sums_side = 0, turn = 0;
      const std::int64_t block_lines = w.words * w.width * 4 / 64;  // of all columns
      const int fetch_lines = static_cast<int>(ceil_div(block_lines, group * vectors));
      for (std::int64_t b = 0; b < a_.blocks; b += cut_.chunk) {
        const std::int64_t count = std::min(cut_.chunk, a_.blocks - b);
        const auto* fetch = reinterpret_cast<const std::byte*>(w.data + (b + count) * w.words * w.width);
        for (int v = 0; v < vectors; ++v) {
          float* const scale = floats(cut_.scales, side * cut_.chunk * 64);
          float* const offset = floats(cut_.offsets, side * cut_.chunk * 64);
          side = 1 - side;
          numbers.unpack(w, v, b, count, own + cut_.right, scale, offset);
          for (std::int64_t t = 0; t < group; ++t) {
            const std::int64_t of_rows = ((t0 + t) * a_.blocks + b) * a_.tile_rows;
            const unit_piece now{count,
                                 scratch_ + (t0 + t) * a_.tile_bytes() + b * a_.block_bytes(),
                                 own + cut_.right,
                                 floats(cut_.sums, sums_side * cut_.chunk * unit_schedule::tile),
                                 scale,
                                 uniform ? nullptr : offset,
                                 row_scales() + of_rows,
                                 row_sums() + of_rows,
                                 floats(cut_.totals, (t * vectors + v) * unit_schedule::tile),
                                 fetch,
                                 fetch_lines,
                                 b == 0};
            fetch += count * fetch_lines * 64;
            sums_side = 1 - sums_side;
            advance.at[turn](a_, now, before);
            turn = 1 - turn;
            before = now;
          }
        }
      }
      advance.at[turn](a_, {}, before);
      const std::int64_t row0 = t0 * a_.tile_rows, rows = std::min(group * a_.tile_rows, p_.m - row0);
      for (std::int64_t t = 0; t * a_.tile_rows < rows; ++t)
        write(floats(cut_.totals, t * vectors * unit_schedule::tile), row0 + t * a_.tile_rows, col0, cols);
      done(row0, rows);
    }
  }

 private:
  static constexpr std::int64_t lanes = native_lanes<float>;
  float* row_scales() const { return reinterpret_cast<float*>(scratch_ + at_.scales); }
  float* row_sums() const { return reinterpret_cast<float*>(scratch_ + at_.sums); }

  // Writes the totals of a tile of rows to the result, a line of each vector one after the other.
  void write(const float* total, std::int64_t row, std::int64_t col, std::int64_t cols) const {
    float* to = p_.c + row * p_.c_row + col;
    const std::int64_t rows = std::min(a_.tile_rows, p_.m - row);
    for (std::int64_t r = 0; r < rows; ++r, to += p_.c_row, total += lanes)
      for (std::int64_t j = 0; j < cols; j += lanes) {
        const native_vec<float> sums = load<native_vec<float>>(total + j * matrix_unit::rows) * p_.form.factor;
        if (j + lanes <= cols)
          store(to + j, sums);
        else
          store_n(to + j, sums, static_cast<int>(cols - j));
      }
  }

  void prepare(std::int64_t r) const {
    const std::int64_t t = r / a_.tile_rows, inside = r - t * a_.tile_rows;
    const std::int64_t of_rows = t * a_.blocks * a_.tile_rows + inside;
    const bool sums_up = Bytes || p_.form.zeros != zero_format::uniform;
    const row_places<float> at{scratch_ + t * a_.tile_bytes() + inside * a_.line,
                               a_.line,
                               a_.step_bytes(),
                               a_.part_bytes(),
                               row_scales() + of_rows,
                               sums_up ? row_sums() + of_rows : nullptr,
                               a_.tile_rows};
    const float* const x = p_.a + r * p_.a_row;
    if (r >= p_.m)
      clear(at);
    else if constexpr (Bytes)
      round_row<Numbers::bits>(p_.form, x, at);
    else
      split_row<Numbers::bits>(p_.form, x, at);
  }
  // Rows that complete a tile.
  void clear(const row_places<float>& at) const {
    for (std::int64_t s = 0; s < a_.blocks * a_.steps; ++s)
      for (int part = 0; part < a_.parts; ++part)
        std::memset(at.to + s * at.line_step + part * at.part_step, 0, static_cast<std::size_t>(a_.line));
    for (std::int64_t b = 0; b < a_.blocks; ++b) {
      at.scales[b * at.each] = 0;
      if (at.sums) at.sums[b * at.each] = 0;
    }
  }

  const quantized_problem& p_;
  unit_left a_;
  unit_schedule cut_;
  unit_places at_;
  std::byte* scratch_;
};

}  // namespace kiln::kernels
