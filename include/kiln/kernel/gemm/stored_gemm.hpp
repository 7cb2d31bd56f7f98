#pragma once
#include "kiln/kernel/gemm/gemm.hpp"

namespace kiln::kernels {

/// A packed right operand stored in narrower floats than the product's. A block becomes floats in the worker's own
/// memory, where it stays in L2 while rows meet it, and for the next task that reads it.
template <class Stored> class stored_right {
 public:
  static constexpr bool packed = true;
  /// Floats for each worker: those of a block, after a line that says which one.
  static std::int64_t scratch_size(std::int64_t k) {
    return header + depth_block<float>(k) * register_tile<float>::width;
  }

  stored_right(const Stored* b, std::int64_t k, float* scratch, unsigned workers)
      : b_(b), k_(k), scratch_(scratch), each_(scratch_size(k)) {
    for (unsigned w = 0; w < workers; ++w) *held_by(w) = {};
  }

  panel_block<float> block(std::int64_t, std::int64_t col, std::int64_t cols, std::int64_t row, std::int64_t depth,
                           unsigned worker) const {
    const std::int64_t width = round_up(cols, native_lanes<float>);
    const held now{b_ + col * k_ + row * width, depth};
    held* const before = held_by(worker);
    float* const to = reinterpret_cast<float*>(before) + header;
    if (before->at != now.at || before->depth != now.depth) {
      for (std::int64_t i = 0; i < depth * width; i += native_lanes<float>)
        store(to + i, load_stored<native_vec<float>>(now.at + i));
      *before = now;
    }
    return {to, width};
  }
  coming_block<float> peek(std::int64_t, std::int64_t col, std::int64_t cols, std::int64_t row,
                           std::int64_t depth) const {
    constexpr std::int64_t smaller = sizeof(float) / sizeof(Stored);
    const std::int64_t width = round_up(cols, native_lanes<float>);
    return {reinterpret_cast<const float*>(b_ + col * k_ + row * width), width, ceil_div(depth, smaller), width};
  }

 private:
  static constexpr std::int64_t header = 64 / sizeof(float);
  struct held {
    const Stored* at = nullptr;
    std::int64_t depth = 0;
  };
  held* held_by(unsigned worker) const { return reinterpret_cast<held*>(scratch_ + worker * each_); }

  const Stored* b_;
  std::int64_t k_;
  float* scratch_;
  std::int64_t each_;
};

/// Packs B[K, N] that is stored as the packed numbers are, else as `pack_b`.
template <class Stored>
void pack_stored_b(thread_pool& pool, Stored* to, const void* from, std::ptrdiff_t row_stride,
                   std::ptrdiff_t col_stride, std::int64_t k, std::int64_t n) {
  using V = native_vec<float>;
  constexpr std::int64_t full = register_tile<float>::width, lanes = native_lanes<float>;
  constexpr auto each = static_cast<std::ptrdiff_t>(sizeof(Stored));
  const std::int64_t chunks = ceil_div(k, packed_rows_per_task);
  pool.parallel_for(ceil_div(n, full) * chunks, [&](std::int64_t task, unsigned) {
    const std::int64_t col = task / chunks * full, row = task % chunks * packed_rows_per_task;
    const std::int64_t width = panel_width<float>(col, n);
    const std::int64_t rows = std::min(packed_rows_per_task, k - row), cols = std::min(full, n - col);
    const std::byte* const in = static_cast<const std::byte*>(from) + (row * row_stride + col * col_stride) * each;
    // lines of the block are contiguous; as floats they are turned by whole vectors
    const bool by_columns = row_stride == 1 && col_stride != 1;
    const std::int64_t lines = by_columns ? cols : rows, length = by_columns ? rows : cols;
    const std::ptrdiff_t line = by_columns ? col_stride : row_stride, step = by_columns ? 1 : col_stride;
    alignas(64) float block[packed_rows_per_task * full], wide[packed_rows_per_task * full];
    Stored some[std::max(packed_rows_per_task, full) + lanes] = {};
    for (std::int64_t i = 0; i < lines; ++i) {
      const std::byte* const at = in + i * line * each;
      if (step == 1)
        std::memcpy(some, at, static_cast<std::size_t>(length * each));
      else
        for (std::int64_t j = 0; j < length; ++j) std::memcpy(some + j, at + j * step * each, sizeof(Stored));
      float* const out = block + i * length;
      std::int64_t j = 0;
      for (; j + lanes <= length; j += lanes) store(out + j, load_stored<V>(some + j));
      if (j < length) store_n(out + j, load_stored<V>(some + j), static_cast<int>(length - j));
    }
    if (by_columns)
      pack_panel(wide, width, block, 1, length, rows, cols);
    else
      pack_panel(wide, width, block, length, 1, rows, cols);
    Stored* const panel = to + col * k + row * width;
    for (std::int64_t i = 0; i < rows * width; i += lanes) store_as(panel + i, load<V>(wide + i));
  });
}

/// Floats of scratch that `stored_gemm` uses for products of up to `m` rows, those of the whole batch.
inline std::int64_t stored_gemm_scratch_size(std::int64_t m, std::int64_t n, std::int64_t k, unsigned workers) {
  return (stored_right<half>::scratch_size(k) + matrix_unit_scratch_size<float>(m, n, k)) * workers;
}

/// As `gemm` with one right operand for all matrices that `pack_b` stored in narrower floats at `b`. Few rows convert
/// it in registers, which takes less time than memory does; others convert each block once for all rows of a task.
template <class Stored, class Epilogue = no_epilogue>
void stored_gemm(thread_pool& pool, const gemm_problem<float>& problem, const Stored* b, float* scratch,
                 Epilogue&& epilogue = {}) {
  const gemm_problem<float> p = fold_batch(problem);
  if (p.m <= 0 || p.n <= 0 || p.batch <= 0) return;
  if (p.m <= most_streamed_rows<float>) {
    constexpr std::int64_t width = register_tile<float>::width, near_bytes = 1024 * 1024;
    const std::int64_t panels = ceil_div(p.n, width);
    const bool far = p.k * p.n * static_cast<std::int64_t>(sizeof(Stored)) > near_bytes;
    return pool.parallel_for(p.batch * panels, [&](std::int64_t task, unsigned) {
      const std::int64_t matrix = quotient(task, panels), col = (task - matrix * panels) * width;
      const std::int64_t cols = std::min(width, p.n - col);
      const auto place = p.place(matrix);
      float* const c = place.c + col;
      panel_epilogue<float, std::remove_reference_t<Epilogue>> of_panel{epilogue, true, matrix * p.m, col,
                                                                        cols,     c,    p.c_row};
      multiply_few_rows(p.k, p.a + place.of * p.a_batch, p.a_row, static_cast<int>(p.m), linear_step{p.a_col},
                        b + col * p.k, round_up(cols, native_lanes<float>), c, p.c_row, static_cast<int>(cols), false,
                        far, of_panel);
    });
  }
  const stored_right<Stored> right(b, p.k, scratch, pool.size());
  float* const more = scratch + stored_right<Stored>::scratch_size(p.k) * pool.size();
  if (multiplied_on_matrix_unit(pool, p, plain_left<float>{&p}, right, more, p.m, epilogue)) return;
  // Blocks that few rows meet are converted to L1: with L2's stores that takes as long as ten rows of products.
  const std::int64_t depth = far_depth_block<float>(p.k, p.m);
  multiply(pool, p, depth, gemm_split<float>(p, true, pool.size(), 48, p.task_rows), plain_left<float>{&p}, right,
           epilogue);
}

}  // namespace kiln::kernels
