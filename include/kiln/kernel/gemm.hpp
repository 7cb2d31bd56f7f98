#pragma once

#include <numeric>

#include "kiln/kernel/gemm_panel.hpp"

namespace kiln::kernels {

/// C[m, n] = A[m, k] * B[k, n] for each of `batch` matrices; strides count elements. C's columns are contiguous.
template <class T>
struct gemm_problem {
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::ptrdiff_t a_row = 0, a_col = 1;
  const T* b = nullptr;  // packed by pack_b for `gemm`; of strides b_row, b_col for `gemm_unpacked`
  std::ptrdiff_t b_row = 0, b_col = 1;
  T* c = nullptr;
  std::ptrdiff_t c_row = 0;
  std::int64_t batch = 1;
  std::ptrdiff_t a_batch = 0, b_batch = 0, c_batch = 0;
  std::int64_t a_period = 0;   // when not 0, A starts again after so many matrices
  std::int64_t b_repeats = 1;  // matrices in a row that one B serves; 1 for `gemm`
  /// Where C begins in each of `a_period` matrices, if they lie unevenly; `c_batch` is then from period to period.
  const std::ptrdiff_t* c_at = nullptr;
  std::int64_t task_rows = 128;  // of `gemm`: rows of one matrix that a task takes at most
  std::int64_t b_of(std::int64_t matrix) const { return b_repeats == 1 ? matrix : quotient(matrix, b_repeats); }
};

/// The epilogue that leaves the sums as they are.
struct no_epilogue {
  template <class T>
  void operator()(std::int64_t, std::int64_t, std::int64_t, std::int64_t, T*, std::ptrdiff_t) const {}
};

/// How a product is cut into tasks: each is one panel of columns and one chunk of rows of one matrix. At most
/// `most_rows` rows make a chunk, and at least `least_rows` where fewer chunks would leave workers idle (half of them
/// where a few tasks would be shared unevenly). Panels are a tile wide where B is packed, else they differ by one
/// vector at most. Workers claim stretches of tasks: these run through the chunks first where B is the larger operand,
/// so that each worker reads a part of it, else through the panels.
template <class T>
struct gemm_split {
  std::int64_t panels, chunks, chunk_rows;
  bool by_panels;  // tasks of one panel are neighbours

  struct place {
    std::int64_t matrix, panel, chunk;
  };
  place at(std::int64_t task) const {
    const std::int64_t inner = by_panels ? chunks : panels, outer = by_panels ? panels : chunks;
    const std::int64_t rest = quotient(task, inner), matrix = quotient(rest, outer);
    const std::int64_t fast = task - rest * inner, slow = rest - matrix * outer;
    return by_panels ? place{matrix, slow, fast} : place{matrix, fast, slow};
  }

  gemm_split(const gemm_problem<T>& p, bool packed, unsigned workers, std::int64_t least_rows, std::int64_t most_rows)
      : panels(ceil_div(p.n, register_tile<T>::width)),
        by_panels(p.n > p.m),
        n_(p.n),
        vectors_(register_tile<T>::vectors) {
    if (!packed) {
      const std::int64_t all = ceil_div(p.n, native_lanes<T>);
      vectors_ = all / panels;
      wider_ = all % panels;
    }
    const std::int64_t wanted = workers == 1 ? 1 : ceil_div(8 * static_cast<std::int64_t>(workers), panels * p.batch);
    chunks = std::max(ceil_div(p.m, most_rows), std::clamp<std::int64_t>(p.m / least_rows, 1, wanted));
    // Few tasks that workers can't share evenly are made more: three would leave one of two workers idle for a third.
    const auto many = static_cast<std::int64_t>(workers);
    const auto uneven = [&] {
      const std::int64_t tasks = panels * p.batch * chunks;
      return tasks < 8 * many && tasks % many != 0;
    };
    while (uneven() && p.m >= (chunks + 1) * least_rows / 2) ++chunks;
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

template <class T>
gemm_problem<T> fold_batch(gemm_problem<T> p) {
  if (p.batch > 1 && p.a_period == 0 && p.b_batch == 0 && p.a_batch == p.m * p.a_row && p.c_batch == p.m * p.c_row) {
    p.m *= p.batch;
    p.batch = 1;
  }
  return p;
}

/// Where one block of a panel of the right operand stands, and the step from row to row. Where `source` is not null,
/// the first tile of rows packs it from there.
template <class T>
struct panel_block {
  const T* at;
  std::ptrdiff_t step;
  const T* source = nullptr;
  std::ptrdiff_t source_step = 0;
};

/// A right operand packed by `pack_b`.
template <class T>
struct packed_right {
  const T* b;
  std::ptrdiff_t batch_stride;
  std::int64_t k;
  static constexpr bool packed = true;

  panel_block<T> block(std::int64_t matrix, std::int64_t col, std::int64_t cols, std::int64_t row, std::int64_t,
                       unsigned) const {
    const std::int64_t width = round_up(cols, native_lanes<T>);
    return {b + matrix * batch_stride + col * k + row * width, width};
  }
  /// The memory that a block will be read from.
  coming_block<T> peek(std::int64_t matrix, std::int64_t col, std::int64_t cols, std::int64_t row,
                       std::int64_t depth) const {
    const panel_block<T> at = block(matrix, col, cols, row, depth, 0);
    return {at.at, at.step, depth, at.step};
  }
};

/// Where the rows of the left operand stand for one block of its columns, and the step from row to row.
template <class T>
struct left_block {
  const T* at;
  std::ptrdiff_t step;
};

/// A left operand that is read where it lies.
template <class T>
struct plain_left {
  const gemm_problem<T>* p;

  left_block<T> block(std::int64_t matrix, std::int64_t row0, std::int64_t, std::int64_t col, std::int64_t,
                      unsigned) const {
    return {p->a + matrix * p->a_batch + row0 * p->a_row + col * p->a_col, p->a_row};
  }
};

/// What follows the tiles of one block of one panel: the epilogue, behind the last block.
template <class T, class Epilogue>
struct panel_finish {
  Epilogue& epilogue;
  bool last;
  std::int64_t row0, col0, cols;
  T* c;
  std::ptrdiff_t c_row;

  void operator()(std::int64_t first, int count) const {
    if (last) epilogue(row0 + first, std::int64_t{count}, col0, cols, c + first * c_row, c_row);
  }
  bool in_registers(std::int64_t first, std::int64_t count, tile_finish<T>& to) const {
    return last && finishes_in_registers(epilogue, row0 + first, count, col0, cols, to);
  }
};

/// The loop that all products share. The panel that the worker probably meets next is fetched while one is multiplied;
/// a worker's first one comes in short blocks.
template <class T, class Left, class Right, class Epilogue>
void multiply(thread_pool& pool, const gemm_problem<T>& p, std::int64_t depth_most, const gemm_split<T>& split,
              const Left& lefts, const Right& right, Epilogue&& epilogue) {
  const std::int64_t tasks = p.batch * split.panels * split.chunks;
  // The caches bring a small right operand in by themselves. In a network those of up to 1 MiB are seldom in the
  // second-level cache when their turn comes: fetching them saved 12 %. `far` is how few rows stream a larger one.
  constexpr std::int64_t small_bytes = 128 * 1024, near_bytes = 1024 * 1024;
  const std::int64_t right_bytes = p.k * p.n * static_cast<std::int64_t>(sizeof(T));
  const bool fetches = right_bytes >= small_bytes, far = right_bytes > near_bytes;
  worker_visits visits;
  pool.parallel_for(tasks, [&](std::int64_t task, unsigned worker) {
    const auto [matrix, panel, chunk] = split.at(task);
    const std::int64_t col0 = split.col(panel), cols = split.cols(panel), row0 = chunk * split.chunk_rows;
    const std::int64_t rows = std::min(split.chunk_rows, p.m - row0);
    const std::int64_t period = p.a_period != 0 ? quotient(matrix, p.a_period) : 0, of = matrix - period * p.a_period;
    T* const c = p.c + (p.c_at ? period * p.c_batch + p.c_at[of] : matrix * p.c_batch) + row0 * p.c_row + col0;
    const bool cold = Right::packed && fetches && visits.first(worker) && depth_blocks::grows<T>(rows);
    depth_blocks blocks(p.k, depth_most, cold);
    bool last;
    do {
      const std::int64_t k = blocks.begin(), depth = blocks.rows();
      last = blocks.last();
      panel_block<T> b = right.block(matrix, col0, cols, k, depth, worker);
      if (b.source && rows <= register_tile<T>::rows) b = {b.source, b.source_step};  // nothing would use the copy
      coming_block<T> coming;
      if (fetches && !last) {
        coming = right.peek(matrix, col0, cols, k + depth, blocks.next_rows());
      } else if (fetches && task + 1 < tasks) {
        const auto next = split.at(task + 1);
        if (next.panel != panel || next.matrix != matrix || depth_most < p.k)
          coming = right.peek(next.matrix, split.col(next.panel), split.cols(next.panel), 0, std::min(depth_most, p.k));
      }
      coming.far = far;  // for the last panel, too: equal columns have equal sums
      panel_finish<T, std::remove_reference_t<Epilogue>> finish{epilogue, last,   matrix * p.m + row0, col0, cols,
                                                                c,        p.c_row};
      const auto [left, left_row] = lefts.block(of, row0, rows, k, depth, worker);
      std::int64_t done = 0;
      if (b.source) {
        const auto pack = [&]<int Vectors>() {
          const packing_step<T, Vectors> step{{p.a_col}, const_cast<T*>(b.at)};
          multiply_and_pack(depth, left, left_row, step, b.source, b.source_step, c, p.c_row, k != 0, finish);
        };
        if (cols == register_tile<T>::width)
          pack.template operator()<register_tile<T>::vectors>();
        else
          pack.template operator()<register_tile<T>::vectors - 1>();
        done = register_tile<T>::rows;
        finish.row0 += done, finish.c += done * p.c_row;
      }
      if (done < rows)
        multiply_panel(depth, left + done * left_row, left_row, rows - done, linear_step{p.a_col}, b.at, b.step,
                       c + done * p.c_row, p.c_row, static_cast<int>(cols), k != 0, coming, finish);
      blocks.advance();
    } while (!last);
  });
}

/// Multiplies with a right operand that `pack_b` packed. `epilogue(row0, rows, col0, cols, c, c_row)` is called once
/// for each finished tile of C while it is in the first-level cache, from any worker; rows count through the batch
/// (batch * m + row). K == 0 gives zeros, then the epilogue. Allocates nothing.
template <class T, class Epilogue = no_epilogue>
void gemm(thread_pool& pool, const gemm_problem<T>& problem, Epilogue&& epilogue = {}) {
  const gemm_problem<T> p = fold_batch(problem);
  if (p.m <= 0 || p.n <= 0 || p.batch <= 0) return;
  // A panel that is read once gains nothing from staying in the cache.
  const std::int64_t block = p.m <= register_tile<T>::rows ? std::max<std::int64_t>(p.k, 1) : depth_block<T>(p.k);
  const gemm_split<T> split(p, true, pool.size(), 48, p.task_rows);
  multiply(pool, p, block, split, plain_left<T>{&p}, packed_right<T>{p.b, p.b_batch, p.k}, epilogue);
}

/// Elements of scratch that `gemm_unpacked` uses.
template <class T>
std::int64_t gemm_scratch_size(std::int64_t k, unsigned workers) {
  return depth_block<T>(k) * register_tile<T>::width * workers;
}

/// A right operand of any strides, whose blocks are packed into the worker's scratch when their turn comes, or read in
/// place where too few rows would use the copy, or its rows are few enough to stay in the first-level cache though they
/// lie apart.
template <class T>
struct unpacked_right {
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
    // Rows whole pages apart share a set of the first-level cache and would drive the packed ones, and each other, out.
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
/// `gemm_scratch_size<T>(k, pool.size())` elements, aligned to 64 bytes. Else like `gemm`.
template <class T, class Epilogue = no_epilogue>
void gemm_unpacked(thread_pool& pool, const gemm_problem<T>& problem, T* scratch, Epilogue&& epilogue = {}) {
  const gemm_problem<T> p = fold_batch(problem);
  if (p.m <= 0 || p.n <= 0 || p.batch <= 0) return;
  const std::int64_t block = depth_block<T>(p.k);
  const bool few_rows = p.m <= register_tile<T>::rows && p.b_col == 1;
  // rows that lie apart by a large power of two share a few sets of the cache, of 4 KiB each way
  constexpr std::ptrdiff_t way = 4096 / sizeof(T);
  const bool whole_lines = p.b_row % native_lanes<T> == 0;  // a vector across two lines is read twice
  const bool short_columns = p.k <= 96 && p.b_col == 1 && whole_lines && p.k * std::gcd(p.b_row, way) <= 4 * way;
  const gemm_split<T> split(p, false, pool.size(), 96, p.m);
  const unpacked_right<T> right{&p, scratch, block * register_tile<T>::width, few_rows, short_columns};
  multiply(pool, p, block, split, plain_left<T>{&p}, right, epilogue);
}

}  // namespace kiln::kernels
