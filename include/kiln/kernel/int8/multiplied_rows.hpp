#pragma once

#include <optional>

#include "kiln/kernel/gemm/gemm.hpp"
#include "kiln/kernel/int8/tile.hpp"
#include "kiln/kernel/int8/unit_rows.hpp"

namespace kiln::kernels {

/// A multiple of rows that the matrix unit multiplies together.
inline constexpr std::int64_t matrix_unit_rows = 2 * matrix_unit::rows;

/// A panel of a packed right operand.
struct integer_panel {
  const std::int32_t* at = nullptr;
  std::int64_t width = 0, cols = 0;     ///< columns that it holds, whole vectors, and those that exist
  const std::int32_t* shift = nullptr;  ///< with which their sums begin; or null
  std::int64_t col0 = 0;                ///< what the first column is called
  bool fetches_next = false;            ///< the panel after this one is prefetched meanwhile
};

/// Some rows of a left operand that are multiplied with one panel after another: by the processor's matrix unit where
/// that serves, in vectors otherwise.
template <class Machine> class multiplied_rows {
 public:
  /// Bytes of memory for so many rows of so many words.
  static std::int64_t memory(std::int64_t rows, std::int64_t words) {
    if constexpr (unit_multiplies<Machine>)
      if (matrix_unit::multiplies_bytes()) return unit_rows::size(rows, words);
    return 0;
  }

  /// `memory` is aligned to 64 bytes; null leaves the unit aside.
  multiplied_rows(const integer_runs& runs, const std::byte* const* row, std::int64_t rows, std::byte* memory)
      : runs_(runs), row_(row), rows_(rows), words_(runs.count * runs.words) {
    if constexpr (unit_multiplies<Machine>)
      if (memory && unit_rows::serve(rows, words_)) on_unit_.emplace(runs, row, rows, memory);
  }

  /// The sums go to `finish` as those of `integer_tile` do.
  template <class Finish> void multiply(const integer_panel& panel, const Finish& finish, std::int64_t row0) {
    const std::byte* const next = reinterpret_cast<const std::byte*>(panel.at + panel.width * words_);
    const std::int64_t lines = panel.width * words_ * 4 / line;
    if constexpr (unit_multiplies<Machine>)
      if (on_unit_)
        return on_unit_->multiply(panel.at, panel.width, panel.cols, panel.shift, finish, row0, panel.col0, next,
                                  panel.fetches_next ? lines : 0);
    using tile = register_tile<std::int32_t>;
    const even_blocks blocks(rows_, tile::rows);
    const std::int64_t steps = std::max<std::int64_t>(1, blocks.blocks * words_);
    if (panel.fetches_next) {
      runs_.fetch = next;
      runs_.fetch_step = lines < steps ? lines * line / steps : ceil_div(lines, steps) * line;
    }
    blocks.each([&](std::int64_t first, int count) {
      find_integer_tile<Machine, Finish>(count, static_cast<int>(panel.width / native_lanes<std::int32_t>))(
          runs_, row_ + first, panel.at, panel.shift, finish, row0 + first, panel.col0, static_cast<int>(panel.cols));
      runs_.fetch += words_ * runs_.fetch_step;
    });
  }

 private:
  static constexpr std::int64_t line = 64;
  integer_runs runs_;
  const std::byte* const* row_;
  std::int64_t rows_, words_;
  std::optional<unit_rows> on_unit_;
};

}  // namespace kiln::kernels
