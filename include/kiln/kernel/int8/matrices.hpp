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

/// Some columns of a right operand of bytes, packed by the worker that multiplies by them.
template <class Machine> class packed_columns {
  static constexpr std::int64_t lanes = native_lanes<std::int32_t>, width = register_tile<std::int32_t>::width;

 public:
  /// 32-bit elements that so many columns of so many words take.
  static constexpr std::int64_t size(std::int64_t words, std::int64_t cols) {
    return (words + 1) * round_up(cols, lanes);
  }
  packed_columns(const byte_matrices& p, std::int32_t* memory)
      : p_(p), words_(integer_words<Machine>(p.k)), sums_(memory) {}

  /// Packs columns [col0, col0 + cols) of a matrix, and sums them where the left operand has a zero point.
  void pack(std::int64_t matrix, std::int64_t col0, std::int64_t cols) {
    col0_ = col0, cols_ = cols, panels_ = sums_ + round_up(cols, lanes);
    const std::int32_t a_zero = p_.a_zero + (p_.a_signed ? Machine::offset : 0);  // as the machine holds it
    has_sums_ = a_zero != 0;
    for (std::int64_t col = 0; col < cols; col += width) {
      const bytes_of_panel from{
          p_.b[matrix] + (col0 + col) * p_.b_col, p_.b_row, p_.b_col, p_.k, std::min(width, cols - col), p_.b_signed};
      pack_byte_panel<Machine>(panel(col), width_at(col), from);
      if (has_sums_) sum_panel_columns<Machine>(sums_ + col, panel(col), width_at(col), words_, -a_zero);
    }
  }
  /// Multiplies rows [row0, row0 + rows) by them; `finish` takes the tiles. `memory` as `multiplied_rows` has it.
  template <class Finish>
  void multiply(const std::byte* const* row, std::int64_t row0, std::int64_t rows, const Finish& finish,
                std::int32_t* memory) const {
    const std::ptrdiff_t at_first = 0;
    multiplied_rows<Machine> left({&at_first, 1, words_}, row, rows, reinterpret_cast<std::byte*>(memory));
    for (std::int64_t col = 0; col < cols_; col += width)
      left.multiply({panel(col), width_at(col), std::min(width_at(col), cols_ - col), has_sums_ ? sums_ + col : nullptr,
                     col0_ + col},
                    finish, row0);
  }

 private:
  std::int64_t width_at(std::int64_t col) const { return panel_width<std::int32_t>(col, cols_); }
  std::int32_t* panel(std::int64_t col) const { return panels_ + col * words_; }

  const byte_matrices& p_;
  std::int64_t words_, col0_ = 0, cols_ = 0;
  std::int32_t *sums_, *panels_ = nullptr;
  bool has_sums_ = false;
};

/// Up to `integer_task_rows` rows of a left operand as a machine reads them, and what is added to their sums.
template <class Machine> class left_rows {
  using left = typename Machine::left;
  static constexpr std::int64_t lanes = native_lanes<std::int32_t>;

 public:
  /// Elements of a copied row.
  static constexpr std::int64_t copied_row(std::int64_t words) { return round_up(words, lanes) * Machine::depth; }
  /// 32-bit elements that so many copied rows take.
  static constexpr std::int64_t size(std::int64_t words, std::int64_t rows) { return rows * round_up(words, lanes); }

  left_rows(const byte_matrices& p, std::int32_t* memory)
      : p_(p),
        words_(integer_words<Machine>(p.k)),
        in_place_(sizeof(left) == 1 && !p.a_signed && p.a_col == 1 && p.k % Machine::depth == 0),
        copied_(reinterpret_cast<left*>(memory)),
        b_zero_(p.b_zero - (p.b_signed ? 0 : unsigned_right_offset)) {}

  /// Where row r is copied to.
  left* copied(std::int64_t r) const { return copied_ + r * copied_row(words_); }
  /// Row r was written there: `k` elements, which are filled up to whole words.
  void take_copied(std::int64_t r) {
    std::fill_n(copied(r) + p_.k, round_up(p_.k, Machine::depth) - p_.k, left(0));
    take(r, reinterpret_cast<const std::byte*>(copied(r)));
  }
  /// Reads rows [row0, row0 + rows) of a matrix.
  void read(std::int64_t matrix, std::int64_t row0, std::int64_t rows) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::byte* const from = p_.a[matrix] + (row0 + r) * p_.a_row;
      if (in_place_) {
        take(r, from);
        continue;
      }
      copy_left<Machine>(copied(r), from, p_.a_col, p_.k, p_.a_signed);
      take_copied(r);
    }
  }
  const std::byte* const* addresses() const { return row_; }
  /// Null where nothing is added.
  const std::int32_t* shift() const { return b_zero_ != 0 ? shift_ : nullptr; }

 private:
  void take(std::int64_t r, const std::byte* at) {
    row_[r] = at;
    if (b_zero_ == 0) return;
    const std::int32_t a_zero = p_.a_zero + (p_.a_signed ? Machine::offset : 0);
    const auto whole_depth = static_cast<std::uint32_t>(p_.k) * static_cast<std::uint32_t>(a_zero);
    shift_[r] =
        static_cast<std::int32_t>((whole_depth - sum_left<Machine>(at, words_)) * static_cast<std::uint32_t>(b_zero_));
  }

  const byte_matrices& p_;
  std::int64_t words_;
  bool in_place_;
  left* copied_;
  std::int32_t b_zero_;  // as the machine holds it
  const std::byte* row_[integer_task_rows];
  std::int32_t shift_[integer_task_rows];
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

  // 32-bit elements of a worker's memory: a task's columns, its rows, copies of those, and the sums of a task that
  // keeps them.
  std::int64_t columns_size() const { return packed_columns<Machine>::size(words, cols); }
  std::int64_t rows_size() const { return left_rows<Machine>::size(words, integer_task_rows); }
  std::int64_t copies_size() const { return multiplied_rows<Machine>::memory(integer_task_rows, words) / 4; }
  std::int64_t all() const {
    return columns_size() + rows_size() + copies_size() + integer_task_rows * (integer_task_cols + lanes);
  }
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
  if (p.m <= 0 || p.n <= 0 || p.batch <= 0) return;
  const byte_matrix_tasks<Machine> tasks(p, pool.size());
  pool.parallel_for(tasks.tasks(p), [&](std::int64_t task, unsigned worker) {
    std::int32_t* const own = scratch + worker * tasks.all();
    std::int32_t* const copies = own + tasks.columns_size() + tasks.rows_size();
    std::int32_t* const sums = copies + tasks.copies_size();
    const std::int64_t matrix = task / (tasks.column_tasks * tasks.row_tasks), part = task / tasks.row_tasks;
    const std::int64_t col0 = part % tasks.column_tasks * tasks.cols, cols = std::min(tasks.cols, p.n - col0);
    const std::int64_t first_row = task % tasks.row_tasks * tasks.rows,
                       last_row = std::min(first_row + tasks.rows, p.m);
    if (first_row >= last_row) return;
    packed_columns<Machine> columns(p, own);
    columns.pack(matrix, col0, cols);
    left_rows<Machine> left(p, own + tasks.columns_size());
    const std::int64_t chunks = ceil_div(last_row - first_row, integer_task_rows),
                       chunk = ceil_div(last_row - first_row, chunks);
    for (std::int64_t row0 = first_row; row0 < last_row; row0 += chunk) {
      const std::int64_t rows = std::min(chunk, last_row - row0);
      left.read(matrix, row0, rows);
      const auto finish = finish_of(matrix, row0, col0, sums);
      columns.multiply(left.addresses(), row0, rows,
                       shifted_rows<std::remove_cv_t<decltype(finish)>>{finish, left.shift(), row0}, copies);
      done(finish, matrix, row0, rows, col0, cols);
    }
  });
}

}  // namespace kiln::kernels
