#pragma once

#include <bit>

#include "kiln/kernel/amx/shaped_tiles.hpp"
#include "kiln/kernel/quantized/round.hpp"
#include "kiln/kernel/quantized/tile.hpp"

namespace kiln::kernels {

// Several rows on the processor's matrix unit. The numbers of a vector of columns become an operand of the unit once
// for all rows, some blocks at a time, in L1. The unit's sums of each block are stored, scaled in vectors and added to
// totals, while it makes the next ones.
//
// Rows that are rounded to bytes give exact sums, and totals bit by bit as in vectors. Floats are the sum of three bf16
// (a truncated number, the rest of it truncated, and what remains, exactly); numbers of few bits are one bf16 each.

/// How the left operand lies for the unit: tiles of rows, of each the blocks, of each the steps of the unit, of each
/// the parts of its elements.
struct unit_left {
  int parts, element;  ///< parts of an element, and their bytes
  std::int64_t tile_rows, tiles, line, steps, blocks;

  unit_left(const quantized_problem& p) : parts(p.rounds ? 1 : 3), element(p.rounds ? 1 : 2), blocks(p.form.blocks()) {
    tile_rows = round_up(ceil_div(p.m, ceil_div(p.m, matrix_unit::rows)), 4);
    tiles = ceil_div(p.m, tile_rows);
    line = line_of(p);
    steps = p.form.block * element / line;
  }
  /// Bytes of a tile's row in a step.
  static std::int64_t line_of(const quantized_problem& p) {
    return std::min<std::int64_t>(64, p.form.block * (p.rounds ? 1 : 2));
  }
  std::int64_t part_bytes() const { return tile_rows * line; }
  std::int64_t step_bytes() const { return parts * part_bytes(); }
  std::int64_t block_bytes() const { return steps * step_bytes(); }
  std::int64_t tile_bytes() const { return blocks * block_bytes(); }
  /// Numbers of the depth in a step.
  std::int64_t step_depth() const { return line / element; }
  /// Bytes of a right operand of one vector of columns in a block.
  std::int64_t right_bytes() const { return steps * line * matrix_unit::cols; }
};

/// Rows of the left operand from which on the unit gains: by bytes, and by floats.
inline constexpr std::int64_t unit_byte_rows = 12, unit_float_rows = 5;

/// Whether the matrix unit multiplies such a problem: it has several rows, and numbers that one byte or bf16 holds.
inline bool unit_serves(const quantized_problem& p) {
  const quantized_form& f = p.form;
  if (native_bytes != 64 || !p.matrix_unit || p.m < (p.rounds ? unit_byte_rows : unit_float_rows)) return false;
  const std::int64_t line = unit_left::line_of(p), block = f.block * (p.rounds ? 1 : 2);
  if (line % 16 != 0 || block % line != 0 || line / (p.rounds ? 1 : 2) * f.bits % 32 != 0) return false;
  const float least = -f.zero, most = static_cast<float>((1 << f.bits) - 1) - f.zero;
  const bool uniform = f.zeros == zero_format::uniform && !f.numbers.is_float();
  if (p.rounds) return (!uniform || (least >= -128 && most <= 127)) && matrix_unit::multiplies_bytes();
  return (!uniform || (least >= -256 && most <= 256)) && matrix_unit::available();
}

/// How a task goes through its rows, and the memory that a worker has meanwhile.
struct unit_schedule {
  static constexpr std::int64_t most_vectors = register_tile<float>::vectors, tile = 16 * 64;
  static constexpr std::int64_t near_bytes = 16 * 1024, most_chunk = 4;
  std::int64_t group, chunk;  ///< tiles of rows that meet an unpacked vector, and blocks of it
  std::int64_t right, scales, offsets, sums, totals, size;

  unit_schedule(const unit_left& a) {
    group = std::min<std::int64_t>(a.tiles, a.parts == 1 ? 4 : 2);
    chunk = std::clamp<std::int64_t>(near_bytes / (group * a.block_bytes()), 1, most_chunk);
    right = 0;
    scales = right + chunk * a.right_bytes();
    offsets = scales + 2 * chunk * 64;
    sums = offsets + 2 * chunk * 64;
    totals = sums + 2 * chunk * tile;
    size = totals + group * most_vectors * tile;
  }
};

/// Where a product's left operand, the scales and sums of its blocks, and the workers' memory are in scratch memory.
struct unit_places {
  std::int64_t scales, sums, workers, size;

  unit_places(const quantized_problem& p, unsigned count) {
    const unit_left a(p);
    const std::int64_t of_blocks = round_up(a.tiles * a.tile_rows * a.blocks * 4, 64);
    scales = round_up(a.tiles * a.tile_bytes(), 64);
    sums = scales + of_blocks;
    workers = sums + of_blocks;
    size = workers + unit_schedule(a).size * count;
  }
};

/// Blocks of one tile of rows and one vector of columns.
struct unit_piece {
  std::int64_t count = 0;           ///< blocks
  const std::byte* left = nullptr;  ///< its first block
  const std::byte* right = nullptr;
  float* sums = nullptr;             ///< for each block a tile
  const float* scale = nullptr;      ///< of each block's columns
  const float* offset = nullptr;     ///< their zero points, less what is subtracted before; or null
  const float* row_scale = nullptr;  ///< of each block's rows; null for floats
  const float* row_sum = nullptr;
  float* total = nullptr;            ///< a tile
  const std::byte* fetch = nullptr;  ///< lines that are prefetched meanwhile, for each block so many
  int fetch_lines = 0;
  bool first = false;  ///< totals begin here
};

/// How the unit multiplies a piece: rows of bytes with signed or unsigned ones, or floats, whose zero points are
/// constants or not.
enum class unit_way { signed_bytes, unsigned_bytes, floats, floats_with_zeros };

/// The unit's part of a piece, and the vectors' part of the one before. The unit's sums of a block are stored while it
/// multiplies the next ones, since a store waits for them, and delays what follows.
template <unit_way Way> class unit_tiles {
 public:
  using function = void (*)(const unit_left& a, const unit_piece& now, const unit_piece& before);
  static function find(std::int64_t rows) {
    return rows == 4 ? advance<4> : rows == 8 ? advance<8> : rows == 12 ? advance<12> : advance<16>;
  }

 private:
  using F = native_vec<float>;
  using I = native_vec<std::int32_t>;
  static constexpr int lanes = native_lanes<float>;
  static constexpr bool bytes = Way <= unit_way::unsigned_bytes;
  static constexpr bool has_zeros = Way == unit_way::unsigned_bytes || Way == unit_way::floats_with_zeros;

  template <int Rows>
  [[gnu::noinline]] static void advance(const unit_left& a, const unit_piece& now, const unit_piece& before) {
    F total[Rows] = {};
    if (!before.first)
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) total[r] = load<F>(before.total + r * lanes);
    const std::byte *left = now.left, *right = now.right, *fetch = now.fetch;
    float* sums = now.sums;
    const float *whole = before.sums, *scale = before.scale, *offset = before.offset;
    const float *row_scale = before.row_scale, *row_sum = before.row_sum;
    const auto step = [&]<int C>(std::int64_t i) __attribute__((always_inline)) {
      if (i < now.count) {
        for (int l = 0; l < now.fetch_lines; ++l, fetch += 64) __builtin_prefetch(fetch, 0, 2);
        multiply<C>(a, left, right);
      }
      if (i > 0 && i <= now.count) {
        tile_store<1 - C>(sums, 64);
        sums += unit_schedule::tile / 4;
      }
      if (i >= before.count) return;
      fold<Rows>(whole, scale, offset, row_scale, row_sum, total);
      whole += unit_schedule::tile / 4, scale += lanes, row_scale += Rows;
      if constexpr (has_zeros) offset += lanes, row_sum += Rows;
    };
    const std::int64_t all = std::max(now.count + 1, before.count);
    for (std::int64_t i = 0; i < all; i += 2) {
      step.template operator()<0>(i);
      step.template operator()<1>(i + 1);
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) store(before.total + r * lanes, total[r]);
  }

  template <int C> KILN_FN static void multiply(const unit_left& a, const std::byte*& left, const std::byte*& right) {
    tile_zero<C>();
    for (std::int64_t s = 0; s < a.steps; ++s) {
      tile_load<4 + C>(right, 64);
      right += a.line * matrix_unit::cols;
#pragma GCC unroll 3
      for (int part = 0; part < (bytes ? 1 : 3); ++part) {
        tile_load<6 + C>(left, a.line);
        left += a.part_bytes();
        if constexpr (bytes)
          tile_multiply_signed_bytes<C, 6 + C, 4 + C, Way == unit_way::signed_bytes>();
        else
          tile_multiply<C, 6 + C, 4 + C>();
      }
    }
  }

  template <int Rows>
  KILN_FN static void fold(const float* sums, const float* of_columns, const float* offsets, const float* row_scale,
                           const float* row_sum, F (&total)[Rows]) {
    const F scale = load<F>(of_columns);
    F offset{};
    if constexpr (has_zeros) offset = load<F>(offsets);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      F whole;
      if constexpr (bytes)
        whole = convert<F>(load<I>(reinterpret_cast<const std::int32_t*>(sums + r * lanes)));
      else
        whole = load<F>(sums + r * lanes);
      if constexpr (has_zeros) whole -= offset * broadcast<F>(row_sum[r]);
      total[r] = multiply_add(whole, bytes ? scale * broadcast<F>(row_scale[r]) : scale, total[r]);
    }
  }
};

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
      int side = 0, sums_side = 0;
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
            advance(a_, now, before);
            before = now;
          }
        }
      }
      advance(a_, {}, before);
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
