#pragma once

#include <algorithm>

#include "kiln/kernel/amx/matrix_unit.hpp"
#include "kiln/kernel/gemm/pack.hpp"

namespace kiln::kernels {

// Floats as sums of three bf16, for products on a matrix unit: the first part is the float rounded to nearest, the
// second the remainder, truncated, and the third what remains of that, exactly: 24 bits are 3 * 8. Of the nine products
// of two such sums the three least are omitted: the larger two of them are each below 2^-24 of the whole (Henry, Tang
// and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations", 2019).
// Parts, and products of parts, below 2^-126 are zero: floats below 2^-110, and products below 2^-102, have fewer bits.
// Infinities, floats that round to one, and NaN have a part that is NaN.
//
// Numbers that are bf16, as those of programs of that type, are their first part: products with the others add nothing
// and are left out, for blocks that hold no other numbers.
//
// The 32 steps of a tile's depth are paired as (j, j + 16), in both operands.

/// Parts of a float.
inline constexpr int float_parts = 3;
/// bf16 numbers of one tile's three parts, which are adjacent.
inline constexpr std::int64_t split_tile_size = float_parts * matrix_unit::tile_values;

/// Splits two vectors into pairs (low, high): row `row` of the three parts of a tile at `to`. `seen` gathers the bits
/// of all floats.
KILN_FN void split_pairs(native_vec<float> low, native_vec<float> high, std::uint16_t* to, std::int64_t row,
                         native_vec<std::uint32_t>& seen) {
  using F = native_vec<float>;
  using U = native_vec<std::uint32_t>;
  constexpr std::uint32_t upper_bits = 0xffff0000U;
  const auto store_upper = [&](int part, U l, U h) __attribute__((always_inline)) {
    const U both = (l >> 16) | (h & upper_bits);
    __builtin_memcpy(to + part * matrix_unit::tile_values + row * 2 * matrix_unit::cols, &both, sizeof both);
  };
  seen |= (U)low | (U)high;
  const U lows = (U)low + 0x8000U, highs = (U)high + 0x8000U;
  store_upper(0, lows, highs);
  low -= (F)(lows & upper_bits), high -= (F)(highs & upper_bits);
  store_upper(1, (U)low, (U)high);
  low -= (F)((U)low & upper_bits), high -= (F)((U)high & upper_bits);
  store_upper(2, (U)low, (U)high);
}

/// Tiles along a depth of `count` steps.
constexpr std::int64_t depth_tiles(std::int64_t count) { return ceil_div(count, matrix_unit::depth); }

/// Splits a block of an operand a quarter of a tile (four rows) at a time, between other work. A line is the same
/// quarter of all tiles side by side.
class tile_splitter {
  using F = native_vec<float>;
  using U = native_vec<std::uint32_t>;
  static constexpr std::int64_t side = matrix_unit::rows, two = matrix_unit::depth, quarter_rows = side / 4;

 public:
  tile_splitter() = default;
  /// `count` rows, `step` apart, of `depth` contiguous floats, into tiles of 16 rows, adjacent along the depth; missing
  /// rows and steps are zeros.
  static tile_splitter of_rows(const float* from, std::ptrdiff_t step, std::int64_t count, std::int64_t depth,
                               std::uint16_t* to) {
    tile_splitter s;
    s.high_ = side;
    s.set_way(from, step, to, {side, count, side * step, depth_tiles(depth) * split_tile_size},
              {two, depth, two, split_tile_size});
    return s;
  }
  /// `depth` rows, `step` apart, of `cols` contiguous floats, into tiles of 16 columns, adjacent along the depth;
  /// missing columns and steps are zeros.
  static tile_splitter of_columns(const float* from, std::ptrdiff_t step, std::int64_t depth, std::int64_t cols,
                                  std::uint16_t* to) {
    tile_splitter s;
    s.high_ = side * step;
    s.columns_ = true;
    s.set_way(from, step, to, {two, depth, two * step, split_tile_size},
              {side, cols, side, depth_tiles(depth) * split_tile_size});
    return s;
  }

  std::int64_t quarters_left() const { return left_; }
  /// Whether all floats that were split are bf16, so that their first parts are all of them.
  bool one_part() const {
    constexpr std::uint32_t lower_bits = 0xffffU;
    std::uint32_t lanes[native_lanes<std::uint32_t>], all = 0;
    store(lanes, seen_);
    for (const std::uint32_t x : lanes) all |= x;
    return (all & lower_bits) == 0;
  }
  /// Splits the next quarter and, after the last whole quarter of a line, its partial ones.
  [[gnu::noinline]] void quarter() {
    const float *low = low_, *high = low + high_;
    const std::ptrdiff_t step = row_step_;
    std::uint16_t* const to = to_;
    U seen = seen_;
#pragma GCC unroll 4
    for (std::int64_t r = 0; r < quarter_rows; ++r, low += step, high += step)
      split_pairs(load<F>(low), load<F>(high), to, r, seen);
    seen_ = seen;
    low_ += inner_.from, to_ += inner_.to;
    --left_;
    if (--whole_left_ == 0) end_line();
  }
  void finish() {
    while (left_ > 0) quarter();
  }

 private:
  // Tiles along one dimension: `unit` elements each of `count`, and the strides between tiles.
  struct way {
    std::int64_t unit = 1, count = 0;
    std::ptrdiff_t from = 0, to = 0;
    std::int64_t tiles() const { return ceil_div(count, unit); }
    int in_tile(std::int64_t i, std::int64_t skipped) const {
      return static_cast<int>(std::clamp<std::int64_t>(count - i * unit - skipped, 0, side));
    }
  };

  void set_way(const float* from, std::ptrdiff_t row_step, std::uint16_t* to, const way& outer, const way& inner) {
    from_ = from, row_step_ = row_step, first_ = to;
    outer_ = outer, inner_ = inner;
    left_ = 4 * outer_.tiles() * inner_.tiles();
    begin_line();
  }

  // Goes to the first quarter of the line; lines without a whole one are split at once.
  [[gnu::noinline]] void begin_line() {
    for (; left_ > 0; ++line_) {
      const std::int64_t o = line_ / 4, row = line_ % 4 * quarter_rows;
      low_ = from_ + o * outer_.from + row * row_step_;
      to_ = first_ + o * outer_.to + row * 2 * side;
      whole_left_ = (o + 1) * outer_.unit <= outer_.count ? inner_.count / inner_.unit : 0;
      if (whole_left_ > 0) return;
      split_partial(0);
    }
  }
  void end_line() {
    split_partial(inner_.count / inner_.unit);
    ++line_;
    begin_line();
  }
  // The quarters from i on, which lack rows or columns.
  void split_partial(std::int64_t i) {
    const std::int64_t o = line_ / 4, row = line_ % 4 * quarter_rows;
    const int low_rows = outer_.in_tile(o, 0), high_rows = columns_ ? outer_.in_tile(o, side) : low_rows;
    for (; i < inner_.tiles(); ++i, --left_) {
      const int low = inner_.in_tile(i, 0), high = columns_ ? low : inner_.in_tile(i, side);
      const float* const tile = from_ + o * outer_.from + i * inner_.from;
      std::uint16_t* const to = first_ + o * outer_.to + i * inner_.to;
      for (std::int64_t r = row; r < row + quarter_rows; ++r) {
        const float* const at = tile + r * row_step_;
        split_pairs(r < low_rows ? load_n<F>(at, low) : F{},
                    r < high_rows && high > 0 ? load_n<F>(at + high_, high) : F{}, to, r, seen_);
      }
    }
  }

  const float *from_ = nullptr, *low_ = nullptr;
  std::uint16_t *first_ = nullptr, *to_ = nullptr;
  std::ptrdiff_t row_step_ = 0, high_ = 0;  // to the next row of a tile, and to the other of a pair
  std::int64_t left_ = 0, whole_left_ = 0, line_ = 0;
  bool columns_ = false;
  U seen_{};
  way outer_, inner_;
};

}  // namespace kiln::kernels
