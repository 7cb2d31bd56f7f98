#pragma once

#include "kiln/kernel/gemm/depth_blocks.hpp"
#include "kiln/kernel/gemm/stream_tile.hpp"

namespace kiln::kernels {

/// Whether an epilogue is applied to a tile's sums before they are stored: its member `in_registers` fills a
/// `tile_epilogue` then. One without that member is called after the tile is stored.
template <class Epilogue, class... Where> bool applies_in_registers(const Epilogue& epilogue, Where&&... where) {
  if constexpr (requires { epilogue.in_registers(where...); })
    return epilogue.in_registers(where...);
  else
    return false;
}

/// Memory that will be read next: `rows` rows of `cols` elements, `step` elements apart; null where there is none.
template <class T> struct coming_block {
  const T* at = nullptr;
  std::ptrdiff_t step = 0;
  std::int64_t rows = 0, cols = 0;
  bool far = false;  // the block multiplied meanwhile comes from beyond a core's own caches, too
};

/// A coming block cut into the shares that `tiles` tiles of `depth` steps prefetch one after the other: even shares of
/// contiguous memory, otherwise one line of each row. A 64-bit division costs as much as a short tile: there is one.
template <class T> class block_shares {
 public:
  block_shares(const coming_block<T>& block, std::int64_t tiles, std::int64_t depth)
      : at_(reinterpret_cast<const char*>(block.at)), lines_(block.step != block.cols) {
    constexpr std::int64_t bytes = sizeof(T);
    if (empty()) return;
    if (lines_) {
      step_ = block.step * bytes;
      last_ = (block.cols - 1) * bytes;
      // bytes of a row, in fixed point
      each_ = tiles > 1 ? ((block.cols * bytes / 64 + 1) * 64 * unit) / tiles : 0;
    } else {
      step_ = ceil_div(block.rows * block.cols * bytes, std::max<std::int64_t>(1, tiles * depth));
      each_ = step_ * depth;
    }
  }
  bool empty() const { return at_ == nullptr; }
  /// Whether a share has more lines than a tile has steps.
  bool dense() const { return !lines_ && step_ > 64; }

  fetch_ahead next() {
    const std::int64_t at = place_;
    place_ += each_;
    return {at_ + (lines_ ? std::min(at / unit / 64 * 64, last_) : at), step_};
  }

 private:
  static constexpr std::int64_t unit = 256;
  const char* at_;
  bool lines_;
  std::ptrdiff_t step_ = 0;
  std::int64_t each_ = 0, last_ = 0, place_ = 0;
};

/// Multiplies 1 to `most_streamed_rows` rows with one panel block of `depth` rows, which comes from `far` or not;
/// `epilogue(0, rows)` is called at the end.
template <class T, class Step, class Stored, class Epilogue>
void multiply_few_rows(std::int64_t depth, const T* a, std::ptrdiff_t a_row, int rows, Step step, const Stored* b,
                       std::ptrdiff_t b_step, T* c, std::ptrdiff_t c_row, int cols, bool accumulate, bool far,
                       Epilogue&& epilogue) {
  const T* row[most_streamed_rows<T>] = {};
  for (int r = 0; r < rows; ++r) row[r] = a + r * a_row;
  const int vectors = static_cast<int>(ceil_div(cols, native_lanes<T>));
  run_stream_tile<T, Step>(rows, vectors, depth, row, step, b, b_step, c, c_row, cols, accumulate, far);
  epilogue(0, rows);
}

/// Multiplies `rows` rows with one panel block of `depth` rows; `epilogue(row, count)` is called after each tile, or
/// its member `in_registers(row, count, tile_epilogue&)` gives what is applied to the sums before they are stored.
/// Meanwhile `next` is prefetched to L2, or the following rows of A where there is no such block.
template <class T, class Step, class Epilogue>
void multiply_panel(std::int64_t depth, const T* a, std::ptrdiff_t a_row, std::int64_t rows, Step step, const T* b,
                    std::ptrdiff_t b_step, T* c, std::ptrdiff_t c_row, int cols, bool accumulate,
                    const coming_block<T>& next, Epilogue&& epilogue) {
  // Of more rows than `streamed_rows` the sums are added in the order in which larger tiles add them.
  const bool streams = next.far && !accumulate && b_step == round_up(cols, native_lanes<T>);
  if (rows <= (streams ? most_streamed_rows<T> : streamed_rows))
    return multiply_few_rows(depth, a, a_row, static_cast<int>(rows), step, b, b_step, c, c_row, cols, accumulate,
                             next.far, epilogue);
  const int vectors = static_cast<int>(ceil_div(cols, native_lanes<T>));
  const int most = register_tile<T>::rows_of(vectors);
  block_shares<T> shares(next, ceil_div(rows, most), depth);
  tile_epilogue<T> inside{.activates = true};
  const bool alike = applies_in_registers(epilogue, std::int64_t{0}, rows, inside);  // asked once for all tiles
  even_blocks(rows, most).each([&](std::int64_t first, int count) {
    const T* row[2 * register_tile<T>::rows];
    for (int r = 0; r < count; ++r) row[r] = a + (first + r) * a_row;
    const fetch_ahead fetch = !shares.empty() ? shares.next()
                                              : fetch_ahead{reinterpret_cast<const char*>(row[count - 1] + a_row),
                                                            count * static_cast<std::ptrdiff_t>(sizeof(T))};
    const bool applied = alike || applies_in_registers(epilogue, first, std::int64_t{count}, inside);
    fetch_rows(c + first * c_row, c_row, count, cols, applied ? &inside : nullptr);
    find_tile<T, Step>(count, vectors, shares.dense())(depth, row, step, b, b_step, c + first * c_row, c_row, cols,
                                                       accumulate, fetch, applied ? &inside : nullptr);
    if (!applied) epilogue(first, count);
    if (alike) inside.advance(count);
  });
}

/// The left operand's element k is at `row + k * step`; row k of the right panel, of whole vectors, is packed to `to`
/// from the registers in which it is multiplied.
template <class T, int Vectors> struct packing_step : linear_step {
  T* to;

  KILN_FN void keep(std::ptrdiff_t k, const native_vec<T> (&right)[Vectors]) const {
    constexpr int lanes = native_lanes<T>;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(to + (k * Vectors + v) * lanes, right[v]);
  }
};

/// As `multiply_panel` for the first tile of rows, which packs the panel between its products: that costs a fraction of
/// a separate copy.
template <class T, int Vectors, class Epilogue>
void multiply_and_pack(std::int64_t depth, const T* a, std::ptrdiff_t a_row, packing_step<T, Vectors> step, const T* b,
                       std::ptrdiff_t b_step, T* c, std::ptrdiff_t c_row, bool accumulate, Epilogue&& epilogue) {
  constexpr int rows = register_tile<T>::rows, width = Vectors * native_lanes<T>;
  const T* row[rows];
  for (int r = 0; r < rows; ++r) row[r] = a + r * a_row;
  tile_epilogue<T> inside{.activates = true};
  const bool applied = applies_in_registers(epilogue, 0, rows, inside);
  fetch_rows(c, c_row, rows, width, applied ? &inside : nullptr);
  const fetch_ahead fetch{reinterpret_cast<const char*>(row[rows - 1] + a_row), rows * std::ptrdiff_t{sizeof(T)}};
  multiply_tile<T, rows, Vectors>(depth, row, step, b, b_step, c, c_row, width, accumulate, fetch,
                                  applied ? &inside : nullptr);
  if (!applied) epilogue(0, rows);
}

/// Whether `multiply_and_pack` takes panels of so many columns: a register tile's, or one vector less.
template <class T> constexpr bool packs_while_multiplied(std::int64_t cols) {
  return cols == register_tile<T>::width || cols == register_tile<T>::width - native_lanes<T>;
}

}  // namespace kiln::kernels
