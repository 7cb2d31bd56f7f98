#pragma once

#include <numeric>

#include "kiln/kernel/amx/gemm.hpp"
#include "kiln/kernel/gemm/few_rows.hpp"
#include "kiln/kernel/gemm/vector_product.hpp"

namespace kiln::kernels {

/// How a GEMM is cut into tasks: each is one panel of columns and one chunk of rows of one matrix. A chunk has at most
/// `most_rows` rows, and at least `least_rows` where fewer chunks would leave workers idle (half of them where a few
/// tasks would be shared unevenly). Panels are a register tile wide where B is packed, otherwise they differ by at most
/// one vector. Workers claim ranges of tasks: these run over the chunks first where B is the larger operand, so that
/// each worker reads a part of it, otherwise over the panels. Also over the panels where a packed B fits a core's own
/// caches: a worker then has the same rows in one layer after the other, and reads what it wrote itself.
template <class T> struct gemm_split {
  std::int64_t panels, chunks, chunk_rows;
  bool by_panels;  // tasks of one panel are adjacent

  struct place {
    std::int64_t matrix, panel, chunk;
  };
  place at(std::int64_t task) const {
    const std::int64_t inner = by_panels ? chunks : panels, outer = by_panels ? panels : chunks;
    const std::int64_t rest = quotient(task, inner), matrix = quotient(rest, outer);
    const std::int64_t fast = task - rest * inner, slow = rest - matrix * outer;
    return by_panels ? place{matrix, slow, fast} : place{matrix, fast, slow};
  }

  /// Whether tasks run over the chunks first.
  static bool prefers_panels(const gemm_problem<T>& p, bool packed) {
    return p.n > p.m && (!packed || comes_from_far(p));
  }

  gemm_split(const gemm_problem<T>& p, bool packed, unsigned workers, std::int64_t least_rows, std::int64_t most_rows)
      : gemm_split(p, packed, workers, least_rows, most_rows, prefers_panels(p, packed)) {}
  gemm_split(const gemm_problem<T>& p, bool packed, unsigned workers, std::int64_t least_rows, std::int64_t most_rows,
             bool panel_by_panel)
      : panels(ceil_div(p.n, register_tile<T>::width)),
        by_panels(panel_by_panel),
        n_(p.n),
        vectors_(register_tile<T>::vectors) {
    if (!packed) {
      const std::int64_t all = ceil_div(p.n, native_lanes<T>);
      vectors_ = all / panels;
      wider_ = all % panels;
    }
    const std::int64_t wanted = workers == 1 ? 1 : ceil_div(8 * static_cast<std::int64_t>(workers), panels * p.batch);
    chunks = std::max(ceil_div(p.m, most_rows), std::clamp<std::int64_t>(p.m / least_rows, 1, wanted));
    // Few tasks that do not divide evenly are cut further: three would leave one of two workers idle for a third.
    const auto many = static_cast<std::int64_t>(workers);
    const auto uneven = [&] {
      const std::int64_t tasks = panels * p.batch * chunks;
      return tasks < 8 * many && tasks % many != 0;
    };
    while (uneven() && p.m >= (chunks + 1) * least_rows / 2) ++chunks;
    // As many rows of one matrix for each worker: then it also has the rows that it wrote in the layer before.
    if (const std::int64_t even = round_up(chunks, many);
        packed && p.batch == 1 && !by_panels && p.m >= even * least_rows / 2)
      chunks = even;
    chunk_rows = ceil_div(p.m, chunks);
    chunks = ceil_div(p.m, chunk_rows);
  }
  /// First column of a panel, and its number of columns.
  std::int64_t col(std::int64_t panel) const {
    return std::min(n_, (panel * vectors_ + std::min(panel, wider_)) * native_lanes<T>);
  }
  std::int64_t cols(std::int64_t panel) const { return col(panel + 1) - col(panel); }

 private:
  std::int64_t n_, vectors_, wider_ = 0;
};

/// The loop of all GEMMs. The panel that the worker probably meets next is prefetched while one is multiplied; a
/// worker's first one comes in short blocks.
template <class T, class Left, class Right, class Epilogue>
void multiply(thread_pool& pool, const gemm_problem<T>& p, std::int64_t depth_most, const gemm_split<T>& split,
              const Left& lefts, const Right& right, Epilogue&& epilogue) {
  const std::int64_t tasks = p.batch * split.panels * split.chunks;
  // The hardware prefetcher suffices for a small right operand. In a network, operands of up to 1 MiB are seldom in L2
  // when they are needed: prefetching them saved 12 %.
  constexpr std::int64_t small_bytes = 128 * 1024;
  const bool fetches = right_bytes(p) >= small_bytes, far = comes_from_far(p);
  worker_visits visits;
  pool.parallel_for(tasks, [&](std::int64_t task, unsigned worker) {
    const auto [matrix, panel, chunk] = split.at(task);
    const std::int64_t col0 = split.col(panel), cols = split.cols(panel), row0 = chunk * split.chunk_rows;
    const std::int64_t rows = std::min(split.chunk_rows, p.m - row0);
    const auto place = p.place(matrix);
    T* const c = place.c + row0 * p.c_row + col0;
    const bool cold = Right::packed && fetches && visits.first(worker) && depth_blocks::grows<T>(rows);
    depth_blocks blocks(p.k, depth_most, cold);
    bool last;
    do {
      const std::int64_t k = blocks.begin(), depth = blocks.rows();
      last = blocks.last();
      panel_block<T> b = right.block(matrix, col0, cols, k, depth, worker);
      if (b.source && rows <= register_tile<T>::rows) b = {b.source, b.source_step};  // nothing reuses the copy
      coming_block<T> coming;
      if (fetches && !last) {
        coming = right.peek(matrix, col0, cols, k + depth, blocks.next_rows());
      } else if (fetches && task + 1 < tasks) {
        const auto next = split.at(task + 1);
        if (next.panel != panel || next.matrix != matrix || depth_most < p.k)
          coming = right.peek(next.matrix, split.col(next.panel), split.cols(next.panel), 0, std::min(depth_most, p.k));
      }
      coming.far = far;  // for the last panel, too, so that equal columns have equal sums
      panel_epilogue<T, std::remove_reference_t<Epilogue>> of_panel{epilogue, last,   matrix * p.m + row0, col0, cols,
                                                                    c,        p.c_row};
      const auto [left, left_row] = lefts.block(place.of, row0, rows, k, depth, worker);
      std::int64_t done = 0;
      if (b.source) {
        const auto pack = [&]<int Vectors>() {
          const packing_step<T, Vectors> step{{p.a_col}, const_cast<T*>(b.at)};
          multiply_and_pack(depth, left, left_row, step, b.source, b.source_step, c, p.c_row, k != 0, of_panel);
        };
        if (cols == register_tile<T>::width)
          pack.template operator()<register_tile<T>::vectors>();
        else
          pack.template operator()<register_tile<T>::vectors - 1>();
        done = register_tile<T>::rows;
        of_panel.row0 += done, of_panel.c += done * p.c_row;
      }
      if (done < rows)
        multiply_panel(depth, left + done * left_row, left_row, rows - done, linear_step{p.a_col}, b.at, b.step,
                       c + done * p.c_row, p.c_row, static_cast<int>(cols), k != 0, coming, of_panel);
      blocks.advance();
    } while (!last);
  });
}

/// Elements of scratch that `gemm` uses for products of up to `m` rows, those of the whole batch.
template <class T> std::int64_t gemm_scratch_size(std::int64_t m, std::int64_t n, std::int64_t k, unsigned workers) {
  return matrix_unit_scratch_size<T>(m, n, k) * workers;
}

/// Multiplies with a right operand that `pack_b` packed. `epilogue(row0, rows, col0, cols, c, c_row)` is called once
/// for each finished tile of C while it is in L1, from any worker; rows count through the batch (batch * m + row). K ==
/// 0 gives zeros, then the epilogue. `scratch`, aligned to 64 bytes, holds `gemm_scratch_size<T>(batch * m, n, k,
/// pool.size())` elements. Allocates nothing.
template <class T, class Epilogue = no_epilogue>
void gemm(thread_pool& pool, const gemm_problem<T>& problem, T* scratch, Epilogue&& epilogue = {}) {
  const gemm_problem<T> p = fold_batch(problem);
  if (p.m <= 0 || p.n <= 0 || p.batch <= 0) return;
  // A single tile takes less time than planning tasks.
  if (p.batch == 1 && p.m <= streamed_rows && p.n <= register_tile<T>::width)
    return pool.parallel_for(1, [&](std::int64_t, unsigned) {
      panel_epilogue<T, std::remove_reference_t<Epilogue>> of_panel{epilogue, true, 0, 0, p.n, p.c, p.c_row};
      multiply_few_rows(p.k, p.a, p.a_row, static_cast<int>(p.m), linear_step{p.a_col}, p.b,
                        round_up(p.n, native_lanes<T>), p.c, p.c_row, static_cast<int>(p.n), false, comes_from_far(p),
                        of_panel);
    });
  const packed_right<T> right{p.b, p.b_batch, p.k};
  if (multiplied_on_matrix_unit(pool, p, plain_left<T>{&p}, right, scratch, p.m, epilogue)) return;
  // A panel that is read once gains nothing from staying in the cache.
  const std::int64_t block = p.m <= register_tile<T>::rows ? std::max<std::int64_t>(p.k, 1)
                             : comes_from_far(p)           ? far_depth_block<T>(p.k, p.m)
                                                           : depth_block<T>(p.k);
  const gemm_split<T> split(p, true, pool.size(), 48, p.task_rows);
  multiply(pool, p, block, split, plain_left<T>{&p}, right, epilogue);
}

/// Elements of the panels of a right operand that the workers pack.
template <class T> std::int64_t packed_panels_size(std::int64_t k, unsigned workers) {
  return depth_block<T>(k) * register_tile<T>::width * workers;
}
/// Elements of scratch that `gemm_unpacked` uses for products of up to `m` rows, those of the whole batch.
template <class T>
std::int64_t gemm_unpacked_scratch_size(std::int64_t m, std::int64_t n, std::int64_t k, unsigned workers) {
  return packed_panels_size<T>(k, workers) + matrix_unit_scratch_size<T>(m, n, k) * workers;
}

/// A right operand of any strides, whose blocks are packed into the worker's scratch when they are needed, or read in
/// place where too few rows would use the copy or the operand's rows, though apart, stay in L1.
template <class T> struct unpacked_right {
  const gemm_problem<T>* p;
  T* scratch;
  std::int64_t scratch_each;
  bool few_rows, short_columns;
  static constexpr bool packed = false;

  panel_block<T> block(std::int64_t matrix, std::int64_t col, std::int64_t cols, std::int64_t row, std::int64_t depth,
                       unsigned worker) const {
    const T* const from = p->b + p->b_of(matrix) * p->b_batch + col * p->b_col + row * p->b_row;
    const std::int64_t width = round_up(cols, native_lanes<T>);
    if ((few_rows || short_columns) && cols == width) return {from, p->b_row};
    T* const panel = scratch + worker * scratch_each;
    // Rows whole pages apart share a set of L1 and would evict the packed rows and each other.
    const bool spread = p->b_row * static_cast<std::ptrdiff_t>(sizeof(T)) % 4096 != 0;
    if (p->b_col == 1 && packs_while_multiplied<T>(cols) && spread) return {panel, width, from, p->b_row};
    pack_panel(panel, width, from, p->b_row, p->b_col, depth, cols);
    return {panel, width};
  }
  coming_block<T> peek(std::int64_t matrix, std::int64_t col, std::int64_t cols, std::int64_t row,
                       std::int64_t depth) const {
    const T* const from = p->b + p->b_of(matrix) * p->b_batch + col * p->b_col + row * p->b_row;
    if (p->b_col == 1) return {from, p->b_row, depth, cols};
    if (p->b_row == 1 && p->b_col == depth) return {from, p->b_col, cols, depth};
    return {};
  }
};

/// Multiplies with a right operand of any strides (`b_row`, `b_col`); `scratch` holds
/// `gemm_unpacked_scratch_size<T>(batch * m, n, k, pool.size())` elements, aligned to 64 bytes. Else like `gemm`.
template <class T, class Epilogue = no_epilogue>
void gemm_unpacked(thread_pool& pool, const gemm_problem<T>& problem, T* scratch, Epilogue&& epilogue = {}) {
  const gemm_problem<T> p = fold_batch(problem);
  if (p.m <= 0 || p.n <= 0 || p.batch <= 0) return;
  if (multiplied_as_vector(pool, p, epilogue) || multiplied_as_few_rows(pool, p, epilogue)) return;
  const std::int64_t block = depth_block<T>(p.k);
  const bool few_rows = p.m <= register_tile<T>::rows && p.b_col == 1;
  // rows apart by a large power of two share a few sets of the cache, whose ways have 4 KiB each
  constexpr std::ptrdiff_t way = 4096 / sizeof(T);
  const bool whole_lines = p.b_row % native_lanes<T> == 0;  // a vector across two lines is read twice
  const bool short_columns = p.k <= 96 && p.b_col == 1 && whole_lines && p.k * std::gcd(p.b_row, way) <= 4 * way;
  // the matrix unit splits rows in place
  const unpacked_right<T> in_place{&p, scratch, block * register_tile<T>::width, false, p.b_col == 1};
  T* const more = scratch + packed_panels_size<T>(p.k, pool.size());
  if (multiplied_on_matrix_unit(pool, p, plain_left<T>{&p}, in_place, more, p.m, epilogue)) return;
  const gemm_split<T> split(p, false, pool.size(), 96, p.m);
  const unpacked_right<T> right{&p, scratch, block * register_tile<T>::width, few_rows, short_columns};
  multiply(pool, p, block, split, plain_left<T>{&p}, right, epilogue);
}

}  // namespace kiln::kernels
