#pragma once

#include "kiln/kernel/gemm/channel_prologue.hpp"
#include "kiln/kernel/gemm/gemm.hpp"

namespace kiln::kernels {

/// A left operand of one matrix, with contiguous rows, after a prologue: the rows of a task, as far as blocks have read
/// them, are stored in the worker's scratch and stay there for its next panels. Rows are pixels of images.
template <class T> class prologue_left {
 public:
  /// Each worker's scratch has `each` elements; an image has `pixels` rows.
  prologue_left(const gemm_problem<T>& p, const channel_prologue<T>& prologue, std::int64_t pixels, T* scratch,
                std::int64_t each, unsigned workers)
      : p_(p), prologue_(prologue), pixels_(pixels), each_(each), scratch_(scratch) {
    for (unsigned w = 0; w < workers; ++w) mark(w, {-1, 0});
  }
  /// Elements of scratch for each worker.
  static std::int64_t scratch_size(std::int64_t task_rows, std::int64_t k) { return header + task_rows * row_step(k); }

  left_block<T> block(std::int64_t, std::int64_t row0, std::int64_t rows, std::int64_t col, std::int64_t cols,
                      unsigned worker) const {
    T* const own = scratch_ + worker * each_;
    T* const local = own + header;
    held at;
    __builtin_memcpy(&at, own, sizeof at);
    if (at.row0 != row0) at = {row0, 0};
    if (const std::int64_t from = at.cols; from < col + cols) {
      for (std::int64_t r = 0; r < rows;) {
        const std::int64_t image = prologue_.scale_step == 0 ? 0 : quotient(row0 + r, pixels_);
        const std::int64_t end = prologue_.scale_step == 0 ? rows : std::min(rows, (image + 1) * pixels_ - row0);
        const channel_prologue<T> of = prologue_.of_image(image);
        for (; r < end; ++r)
          of.of_pixel(p_.a + (row0 + r) * p_.a_row + from, local + r * row_step(p_.k) + from, from, col + cols - from);
      }
      mark(worker, {row0, col + cols});
    }
    return {local + col, row_step(p_.k)};
  }

 private:
  // Which rows the scratch holds, and how many of their columns.
  struct held {
    std::int64_t row0, cols;
  };
  static constexpr std::int64_t header = 64 / sizeof(T);
  // With a power of two as row stride, rows would share few sets of the cache.
  static std::ptrdiff_t row_step(std::int64_t k) { return round_up(k, header) + header; }
  void mark(unsigned worker, const held& at) const { __builtin_memcpy(scratch_ + worker * each_, &at, sizeof at); }

  const gemm_problem<T>& p_;
  const channel_prologue<T>& prologue_;
  std::int64_t pixels_, each_;
  T* scratch_;
};

/// Fewer rows than these, eight register tiles, do not pay for a task of `gemm_with_prologue`: it takes so many even
/// where they exceed the cache.
inline constexpr std::int64_t least_prologue_rows = 48;
/// The most rows of a task of `gemm_with_prologue`: those whose transformed columns stay in L2 beside the panels that
/// they meet. On the matrix unit, more rows amortize the splitting of the panels.
template <class T> std::int64_t most_prologue_rows(const gemm_problem<T>& p) {
  const std::int64_t bytes = (gains_from_matrix_unit(p) ? 512 : 192) * 1024;
  const std::int64_t fitting = bytes / static_cast<std::int64_t>(sizeof(T)) / std::max<std::int64_t>(1, p.k);
  return std::clamp(fitting, least_prologue_rows, std::max(least_prologue_rows, p.task_rows));
}

/// How a GEMM of one matrix after a prologue is cut: the panels of a chunk are adjacent tasks, so that a worker
/// transforms its rows once, and they stay in L2 meanwhile.
template <class T> gemm_split<T> prologue_split(const gemm_problem<T>& p, unsigned workers) {
  return {p, true, workers, least_prologue_rows, most_prologue_rows(p), false};
}

/// Elements of a worker's transformed rows.
template <class T> std::int64_t prologue_rows_size(const gemm_problem<T>& p) {
  return round_up(prologue_left<T>::scratch_size(std::min(p.m, most_prologue_rows(p)), p.k), native_lanes<T>);
}
/// Elements of scratch, aligned to 64 bytes, that `gemm_with_prologue` uses for each worker.
template <class T> std::int64_t gemm_with_prologue_scratch_size(const gemm_problem<T>& p) {
  return prologue_rows_size(p) + matrix_unit_scratch_size<T>(p.m, p.n, p.k);
}

/// As `gemm` for one matrix with contiguous rows of A, after a prologue whose channels are A's columns; each `pixels`
/// rows are an image.
template <class T, class Epilogue = no_epilogue>
void gemm_with_prologue(thread_pool& pool, const gemm_problem<T>& p, const channel_prologue<T>& prologue,
                        std::int64_t pixels, T* scratch, Epilogue&& epilogue = {}) {
  if (p.m <= 0 || p.n <= 0) return;
  const prologue_left<T> left(p, prologue, pixels, scratch, prologue_rows_size(p), pool.size());
  const packed_right<T> right{p.b, 0, p.k};
  T* const more = scratch + prologue_rows_size(p) * pool.size();
  if (multiplied_on_matrix_unit(pool, p, left, right, more, most_prologue_rows(p), epilogue)) return;
  multiply(pool, p, depth_block<T>(p.k), prologue_split(p, pool.size()), left, right, epilogue);
}

}  // namespace kiln::kernels
