#pragma once

#include <algorithm>

#include "kiln/kernel/amx/shaped_tiles.hpp"
#include "kiln/kernel/gemm/pack.hpp"
#include "kiln/kernel/gemm/tile.hpp"
#include "kiln/kernel/quantized/problem.hpp"
#include "kiln/kernel/simd/vector.hpp"

namespace kiln::kernels {

// What the matrix unit does for a product with weights of few bits (unit.hpp): how operands lie for it, and the sums of
// blocks.

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

/// Functions that are called in turns.
struct unit_advance {
  void (*at[2])(const unit_left& a, const unit_piece& now, const unit_piece& before);
};

/// The unit's part of a piece, and the vectors' part of the one before. Blocks go in pairs, in turns, since a product
/// that adds to the sums of the one before waits for them; a pair has the registers that the last one has not, since
/// a store waits for its sums.
template <unit_way Way> class unit_tiles {
 public:
  static unit_advance find(std::int64_t rows) {
    return rows == 4 ? of<4>() : rows == 8 ? of<8>() : rows == 12 ? of<12>() : of<16>();
  }

 private:
  using F = native_vec<float>;
  using I = native_vec<std::int32_t>;
  static constexpr int lanes = native_lanes<float>;
  static constexpr bool bytes = Way <= unit_way::unsigned_bytes;
  static constexpr bool has_zeros = Way == unit_way::unsigned_bytes || Way == unit_way::floats_with_zeros;

  template <int Rows> static unit_advance of() { return {advance<Rows, 0>, advance<Rows, 2>}; }

  template <int Rows, int First>
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
      const std::int64_t count = std::min<std::int64_t>(now.count - i, 2);
      if (count > 0) {
        for (std::int64_t l = 0; l < count * now.fetch_lines; ++l, fetch += 64) __builtin_prefetch(fetch, 0, 2);
        count == 2 ? multiply<C, true>(a, left, right) : multiply<C, false>(a, left, right);
      }
      for (std::int64_t b = i; b < std::min(before.count, i + 2); ++b) {
        fold<Rows>(whole, scale, offset, row_scale, row_sum, total);
        whole += unit_schedule::tile / 4, scale += lanes, row_scale += Rows;
        if constexpr (has_zeros) offset += lanes, row_sum += Rows;
      }
      if (count > 0) tile_store<C>(sums, 64);
      if (count > 1) tile_store<C + 1>(sums + unit_schedule::tile / 4, 64);
      sums += 2 * (unit_schedule::tile / 4);
    };
    const std::int64_t all = std::max(now.count, before.count);
    for (std::int64_t i = 0; i < all; i += 4) {
      step.template operator()<First>(i);
      if (i + 2 < all) step.template operator()<2 - First>(i + 2);
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) store(before.total + r * lanes, total[r]);
  }

  // One block, or the next one too.
  template <int C, bool Two>
  KILN_FN static void multiply(const unit_left& a, const std::byte*& left, const std::byte*& right) {
    const std::int64_t right_step = a.line * matrix_unit::cols;
    const std::byte *const next_left = left + a.block_bytes(), *const next_right = right + a.steps * right_step;
    tile_zero<C>();
    if constexpr (Two) tile_zero<C + 1>();
    for (std::int64_t s = 0; s < a.steps; ++s) {
      tile_load<4>(right + s * right_step, 64);
      if constexpr (Two) tile_load<5>(next_right + s * right_step, 64);
#pragma GCC unroll 3
      for (int part = 0; part < (bytes ? 1 : 3); ++part) {
        const std::int64_t at = s * a.step_bytes() + part * a.part_bytes();
        add<C, 6, 4>(left + at, a.line);
        if constexpr (Two) add<C + 1, 7, 5>(next_left + at, a.line);
      }
    }
    left = Two ? next_left + a.block_bytes() : next_left;
    right = Two ? next_right + a.steps * right_step : next_right;
  }
  template <int Sums, int Left, int Right> KILN_FN static void add(const std::byte* left, std::int64_t line) {
    tile_load<Left>(left, line);
    if constexpr (bytes)
      tile_multiply_signed_bytes<Sums, Left, Right, Way == unit_way::signed_bytes>();
    else
      tile_multiply<Sums, Left, Right>();
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

}  // namespace kiln::kernels
