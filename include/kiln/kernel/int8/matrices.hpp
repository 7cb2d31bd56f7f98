#pragma once

#include "kiln/kernel/int8/gemm.hpp"
#include "kiln/kernel/int8/pack_bytes.hpp"

namespace kiln::kernels {

/// Adds a number for each row to a tile's sums, where there are such numbers, and hands them on.
template <class Finish> struct shifted_rows {
  const Finish& then;
  const std::int32_t* shift = nullptr;  ///< of row `row0`, or null
  std::int64_t row0 = 0;

  template <int Rows, int Vectors>
  KILN_FN void take(native_vec<std::int32_t> (&sum)[Rows][Vectors], std::int64_t at_row, std::int64_t at_col,
                    int cols) const {
    if (shift) {
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) sum[r][v] += broadcast<native_vec<std::int32_t>>(shift[at_row - row0 + r]);
    }
    then.template take<Rows, Vectors>(sum, at_row, at_col, cols);
  }
};

/// How a batch of products is divided: a task packs some columns of one matrix and multiplies some rows by them.
template <class Machine> struct byte_matrix_tasks {
  static constexpr std::int64_t lanes = native_lanes<std::int32_t>, width = register_tile<std::int32_t>::width;
  std::int64_t words, cols, rows, column_tasks, row_tasks;

  byte_matrix_tasks(const byte_matrices& p, unsigned workers) : words(integer_words<Machine>(p.k)) {
    constexpr std::int64_t packed_words = 64 * 1024;  // they stay in L2
    const std::int64_t most =
        std::clamp(packed_words / std::max<std::int64_t>(1, words) / width * width, width, integer_task_cols);
    // few matrices: columns are shared out first, since each task packs its own
    const std::int64_t wanted =
        workers == 1 ? 1 : ceil_div(2 * static_cast<std::int64_t>(workers), std::max<std::int64_t>(1, p.batch));
    cols = std::clamp(round_up(ceil_div(p.n, wanted), width), width, most);
    column_tasks = ceil_div(p.n, cols);
    const std::int64_t chunks = ceil_div(p.m, integer_task_rows);
    row_tasks = std::clamp<std::int64_t>(ceil_div(wanted, std::max<std::int64_t>(1, column_tasks)), 1,
                                         std::max<std::int64_t>(1, chunks));
    rows = ceil_div(p.m, row_tasks);
  }
  std::int64_t tasks(const byte_matrices& p) const { return p.batch * column_tasks * row_tasks; }

  // 32-bit elements of a worker's memory: sums of a task's columns and its panels, rows and what is added to their
  // sums, and the sums of a task that keeps them.
  std::int64_t panels() const { return (words + 1) * cols; }
  std::int64_t left() const { return integer_task_rows * round_up(words, lanes); }
  std::int64_t all() const { return panels() + left() + 64 + integer_task_rows * (integer_task_cols + lanes); }
};

/// 32-bit elements of scratch for `workers` workers.
template <class Machine> std::int64_t byte_matrices_scratch(const byte_matrices& p, unsigned workers) {
  return byte_matrix_tasks<Machine>(p, workers).all() * workers;
}

/// Runs a batch of products of bytes, exact in 32 bits. `finish_of(matrix, row0, col0, sums)` makes what takes the
/// tiles of a part from registers, perhaps to `sums`, and `done(finish, matrix, row0, rows, col0, cols)` ends it; rows
/// and columns are counted within a matrix.
template <class Machine, class FinishOf, class Done>
void multiply_byte_matrices(thread_pool& pool, const byte_matrices& p, std::int32_t* scratch, FinishOf&& finish_of,
                            Done&& done) {
  using left = typename Machine::left;
  if (p.m <= 0 || p.n <= 0 || p.batch <= 0) return;
  constexpr std::int64_t width = register_tile<std::int32_t>::width;
  const byte_matrix_tasks<Machine> tasks(p, pool.size());
  const std::int64_t words = tasks.words;
  const bool in_place = sizeof(left) == 1 && !p.a_signed && p.a_col == 1 && p.k % Machine::depth == 0;
  // as the machine holds them
  const std::int32_t a_zero = p.a_zero + (p.a_signed ? Machine::offset : 0),
                     b_zero = p.b_zero - (p.b_signed ? 0 : unsigned_right_offset);
  const std::ptrdiff_t at_first = 0;
  const integer_runs runs{&at_first, 1, words};
  pool.parallel_for(tasks.tasks(p), [&](std::int64_t task, unsigned worker) {
    std::int32_t* const column_sums = scratch + worker * tasks.all();
    std::int32_t* const panels = column_sums + tasks.cols;
    auto* const copied = reinterpret_cast<left*>(column_sums + tasks.panels());
    std::int32_t* const shift = column_sums + tasks.panels() + tasks.left();
    std::int32_t* const sums = shift + 64;
    const std::int64_t matrix = task / (tasks.column_tasks * tasks.row_tasks), part = task / tasks.row_tasks;
    const std::int64_t col0 = part % tasks.column_tasks * tasks.cols, cols = std::min(tasks.cols, p.n - col0);
    const std::int64_t first_row = task % tasks.row_tasks * tasks.rows,
                       last_row = std::min(first_row + tasks.rows, p.m);
    if (first_row >= last_row) return;
    const auto width_at = [&](std::int64_t col) { return panel_width<std::int32_t>(col, cols); };
    const auto panel_at = [&](std::int64_t col) { return panels + col * words; };
    for (std::int64_t col = 0; col < cols; col += width) {
      const bytes_of_panel from{p.b[matrix] + (col0 + col) * p.b_col, p.b_row,   p.b_col, p.k,
                                std::min(width, cols - col),          p.b_signed};
      pack_byte_panel<Machine>(panel_at(col), width_at(col), from);
      if (a_zero != 0) sum_panel_columns<Machine>(column_sums + col, panel_at(col), width_at(col), words, -a_zero);
    }
    const auto whole_depth = static_cast<std::uint32_t>(p.k) * static_cast<std::uint32_t>(a_zero);
    const std::int64_t chunks = ceil_div(last_row - first_row, integer_task_rows),
                       chunk = ceil_div(last_row - first_row, chunks);
    for (std::int64_t row0 = first_row; row0 < last_row; row0 += chunk) {
      const std::int64_t rows = std::min(chunk, last_row - row0);
      const std::byte* row[integer_task_rows];
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::byte* const from = p.a[matrix] + (row0 + r) * p.a_row;
        row[r] = from;
        if (!in_place) {
          left* const to = copied + r * round_up(words, tasks.lanes) * Machine::depth;
          copy_left<Machine>(to, from, p.a_col, p.k, p.a_signed);
          std::fill_n(to + p.k, round_up(p.k, Machine::depth) - p.k, left(0));
          row[r] = reinterpret_cast<const std::byte*>(to);
        }
        if (b_zero != 0)
          shift[r] = static_cast<std::int32_t>((whole_depth - sum_left<Machine>(row[r], words)) *
                                               static_cast<std::uint32_t>(b_zero));
      }
      const auto finish = finish_of(matrix, row0, col0, sums);
      using Finish = shifted_rows<std::remove_cv_t<decltype(finish)>>;
      const Finish shifted{finish, b_zero != 0 ? shift : nullptr, row0};
      for (std::int64_t col = 0; col < cols; col += width)
        even_blocks(rows, register_tile<std::int32_t>::rows).each([&](std::int64_t first, int count) {
          find_integer_tile<Machine, Finish>(count, static_cast<int>(width_at(col) / tasks.lanes))(
              runs, row + first, panel_at(col), width_at(col), a_zero != 0 ? column_sums + col : nullptr, shifted,
              row0 + first, col0 + col, static_cast<int>(std::min(width_at(col), cols - col)));
        });
      done(finish, matrix, row0, rows, col0, cols);
    }
  });
}

}  // namespace kiln::kernels
