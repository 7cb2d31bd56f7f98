#pragma once

#include <cstring>

#include "kiln/kernel/amx/matrix_unit.hpp"
#include "kiln/kernel/int8/tile.hpp"

namespace kiln::kernels {

/// Some rows of unsigned bytes as the matrix unit reads them: sixteen at a time, 64 bytes of the depth in a step. Rows
/// that are evenly spaced are read where they lie, others are copied first. Panels of the right operand are those of
/// `pack_integers` with words of four bytes: sixteen of their rows are a step's tile.
class unit_rows {
  static constexpr std::int64_t side = matrix_unit::rows, line = 64, words_of_step = line / 4;

 public:
  static constexpr std::int64_t most_rows = 256;

  /// Bytes of memory that so many rows of so many words need.
  static constexpr std::int64_t size(std::int64_t rows, std::int64_t words) {
    const std::int64_t steps = ceil_div(words, words_of_step);
    return round_up(rows, side) * row_bytes(steps) +
           round_up(2 * steps * static_cast<std::int64_t>(sizeof(std::ptrdiff_t)), line);
  }
  /// Whether the unit is there and gains by a product: below, its tiles are mostly empty.
  static bool serve(std::int64_t rows, std::int64_t words) {
    return rows >= 8 && words >= 4 && matrix_unit::multiplies_bytes();
  }

  /// `memory`, aligned to 64, has `size(rows, words)` bytes and stays while this lives; at most `most_rows` rows.
  unit_rows(const integer_runs& runs, const std::byte* const* row, std::int64_t rows, std::byte* memory)
      : words_(runs.count * runs.words), steps_(ceil_div(words_, words_of_step)), rows_(rows) {
    auto* const table = reinterpret_cast<std::ptrdiff_t*>(memory + round_up(rows, side) * row_bytes(steps_));
    copied_ = table, lying_ = table + steps_;
    for (std::int64_t s = 0; s < steps_; ++s) table[s] = s * line;
    const bool whole = runs.words % words_of_step == 0;
    for (std::int64_t run = 0, s = 0; whole && run < runs.count; ++run)
      for (std::int64_t w = 0; w < runs.words; w += words_of_step) table[steps_ + s++] = runs.at[run] + w * 4;
    for (std::int64_t r = 0; r < rows; r += side) {
      strip& to = strip_[r / side];
      const std::int64_t count = std::min(side, rows - r);
      const std::ptrdiff_t step = count > 1 ? row[r + 1] - row[r] : 0;
      bool even = whole && count == side;
      for (std::int64_t i = 2; even && i < side; ++i) even = row[r + i] - row[r + i - 1] == step;
      to = even ? strip{row[r], step, lying_} : strip{memory + r * row_bytes(steps_), row_bytes(steps_), copied_};
      for (std::int64_t i = 0; !even && i < count; ++i) copy(runs, row[r + i], memory + (r + i) * row_bytes(steps_));
    }
  }

  /// The sums over one panel of `width` columns, which begin as `shift` or 0, go to `finish` as those of `integer_tile`
  /// do. Meanwhile `fetch` is prefetched, `fetch_lines` lines.
  template <class Finish>
  void multiply(const std::int32_t* panel, std::int64_t width, std::int64_t cols, const std::int32_t* shift,
                const Finish& finish, std::int64_t row0, std::int64_t col0, const std::byte* fetch,
                std::int64_t fetch_lines) const {
    alignas(64) std::int32_t sums[2 * side * sums_row];
    alignas(64) std::int32_t tail[words_of_step * register_tile<std::int32_t>::width];
    const std::int64_t whole = words_ / words_of_step, rest = words_ % words_of_step;
    for (std::int64_t j = 0; rest != 0 && j < width; j += strip_width) {
      const std::int64_t wide = std::min(strip_width, width - j);
      std::int32_t* const to = tail + j * words_of_step;
      std::memcpy(to, panel + place_in_panel(words_ - rest, j, width, words_),
                  static_cast<std::size_t>(rest * wide) * 4);
      std::memset(to + rest * wide, 0, static_cast<std::size_t>((words_of_step - rest) * wide) * 4);
    }
    const std::int64_t blocks = ceil_div(rows_, 2 * side) * ceil_div(cols, 2 * side);
    next_lines lines{fetch, std::max<std::int64_t>(1, blocks * std::max<std::int64_t>(1, whole)), fetch_lines};
    for (std::int64_t r = 0; r < rows_; r += 2 * side)
      for (std::int64_t j = 0; j < cols; j += 2 * side) {
        const std::int64_t count = std::min(2 * side, rows_ - r), wide = std::min(2 * side, cols - j);
        const columns right{panel + j * words_, std::min(strip_width, width - j) * 4,
                            rest != 0 ? tail + j * words_of_step : nullptr, whole};
        const strip* const left = strip_ + r / side;
        if (count > side)
          wide > side ? tiles<2, 2>(left, right, sums, lines) : tiles<2, 1>(left, right, sums, lines);
        else
          wide > side ? tiles<1, 2>(left, right, sums, lines) : tiles<1, 1>(left, right, sums, lines);
        const std::int32_t* const add = shift ? shift + j : nullptr;
        if (wide > side)
          hand_over<2>(sums, add, count, finish, row0 + r, col0 + j, static_cast<int>(wide));
        else
          hand_over<1>(sums, add, count, finish, row0 + r, col0 + j, static_cast<int>(wide));
      }
  }

 private:
  struct strip {
    const std::byte* at = nullptr;
    std::ptrdiff_t step = 0;
    const std::ptrdiff_t* steps = nullptr;  // from `at`, of each step of the depth
  };
  struct columns {
    const std::int32_t* at = nullptr;
    std::ptrdiff_t row_bytes = 0;
    const std::int32_t* tail = nullptr;  // of the last step where the depth ends within it
    std::int64_t steps = 0;              // before it
  };
  // Lines that are prefetched little by little.
  struct next_lines {
    const std::byte* at = nullptr;
    std::int64_t calls = 1, lines = 0, due = 0;
    KILN_FN void fetch() {
      for (due += lines; due >= calls; due -= calls, at += line) __builtin_prefetch(at, 0, 2);
    }
  };
  static constexpr std::int64_t sums_row = 2 * side;
  // An odd number of lines, so that rows do not meet in the same sets of a cache.
  static constexpr std::int64_t row_bytes(std::int64_t steps) { return (steps | 1) * line; }

  static void copy(const integer_runs& runs, const std::byte* from, std::byte* to) {
    for (std::int64_t run = 0; run < runs.count; ++run, to += runs.words * 4)
      copy_words(to, from + runs.at[run], runs.words);
  }
  KILN_FN static void copy_words(std::byte* to, const std::byte* from, std::int64_t words) {
    using V = native_vec<std::uint8_t>;
    const auto* const in = reinterpret_cast<const std::uint8_t*>(from);
    auto* const out = reinterpret_cast<std::uint8_t*>(to);
    const std::int64_t count = words * 4;
    constexpr int lanes = native_lanes<std::uint8_t>;
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) store(out + i, load<V>(in + i));
    if (const auto rest = static_cast<int>(count - i); rest > 0) store_n(out + i, load_n<V>(in + i, rest), rest);
  }

  template <int Rows, int Cols>
  static void tiles(const strip* left, const columns& right, std::int32_t* sums, next_lines& lines) {
    zero<Rows, Cols>();
    const auto* at = reinterpret_cast<const std::byte*>(right.at);
    std::int64_t s = 0;
    for (; s < right.steps; ++s, at += words_of_step * right.row_bytes) {
      step<Rows, Cols>(left, s, at, right.row_bytes);
      lines.fetch();
    }
    if (right.tail) step<Rows, Cols>(left, s, reinterpret_cast<const std::byte*>(right.tail), right.row_bytes);
    constexpr std::ptrdiff_t row = sums_row * 4;
    tile_store<0>(sums, row);
    if constexpr (Cols > 1) tile_store<1>(sums + side, row);
    if constexpr (Rows > 1) tile_store<2>(sums + side * sums_row, row);
    if constexpr (Rows > 1 && Cols > 1) tile_store<3>(sums + side * sums_row + side, row);
  }
  template <int Rows, int Cols> KILN_FN static void zero() {
    tile_zero<0>();
    if constexpr (Cols > 1) tile_zero<1>();
    if constexpr (Rows > 1) tile_zero<2>();
    if constexpr (Rows > 1 && Cols > 1) tile_zero<3>();
  }
  template <int Rows, int Cols>
  KILN_FN static void step(const strip* left, std::int64_t s, const std::byte* right, std::ptrdiff_t right_row) {
    tile_load<6>(right, right_row);
    if constexpr (Cols > 1) tile_load<7>(right + line, right_row);
    tile_load<4>(left[0].at + left[0].steps[s], left[0].step);
    if constexpr (Rows > 1) tile_load<5>(left[1].at + left[1].steps[s], left[1].step);
    tile_multiply_bytes<0, 4, 6>();
    if constexpr (Cols > 1) tile_multiply_bytes<1, 4, 7>();
    if constexpr (Rows > 1) tile_multiply_bytes<2, 5, 6>();
    if constexpr (Rows > 1 && Cols > 1) tile_multiply_bytes<3, 5, 7>();
  }

  template <int Vectors, class Finish>
  static void hand_over(const std::int32_t* sums, const std::int32_t* shift, std::int64_t rows, const Finish& finish,
                        std::int64_t row0, std::int64_t col0, int cols) {
    std::int64_t r = 0;
    for (; r + some <= rows; r += some) take<some, Vectors>(sums + r * sums_row, shift, finish, row0 + r, col0, cols);
    for (; r < rows; ++r) take<1, Vectors>(sums + r * sums_row, shift, finish, row0 + r, col0, cols);
  }
  static constexpr int some = 4;
  template <int Rows, int Vectors, class Finish>
  [[gnu::noinline]] static void take(const std::int32_t* sums, const std::int32_t* shift, const Finish& finish,
                                     std::int64_t row0, std::int64_t col0, int cols) {
    using V = native_vec<std::int32_t>;
    constexpr int lanes = native_lanes<std::int32_t>;
    V sum[Rows][Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      const V first = shift ? load<V>(shift + v * lanes) : V{};
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) sum[r][v] = load<V>(sums + r * sums_row + v * lanes) + first;
    }
    finish.template take<Rows, Vectors>(sum, row0, col0, cols);
  }

  std::int64_t words_, steps_, rows_;
  const std::ptrdiff_t *copied_ = nullptr, *lying_ = nullptr;
  strip strip_[most_rows / side];
  matrix_unit_session session_;
};

}  // namespace kiln::kernels
