#pragma once

#include "kiln/kernel/quantized/unit.hpp"

namespace kiln::kernels {

/// Rows of the left operand from which on it is cheaper to write weights out as floats, a panel at a time.
inline constexpr std::int64_t dequantized_rows = 12;
/// Elements of the depth of which a worker writes out a panel: it stays in L2.
inline constexpr std::int64_t dequantized_depth = 512;
/// Rows of one task.
inline constexpr std::int64_t quantized_task_rows = 256;

/// Where the left operand's rows, and the workers' panels, are in scratch memory, in bytes.
struct quantized_scratch {
  std::int64_t rows = 0, row = 0, sums = 0, scales = 0, panels = 0, panel = 0, size = 0;
  bool copies = false, sums_up = false, dequantizes = false;

  quantized_scratch(const quantized_problem& p, unsigned workers) {
    const quantized_form& f = p.form;
    dequantizes = !p.rounds && p.m >= dequantized_rows;
    copies = p.rounds || f.split_nibbles || f.k != f.depth();
    sums_up = p.rounds || (f.zeros != zero_format::uniform && !dequantizes);
    row = copies ? round_up(f.depth() * (p.rounds ? 1 : 4), 64) : p.a_row * 4;
    if (copies) size += p.m * row;
    scales = size;
    if (p.rounds) size += round_up(p.m * f.blocks() * 4, 64);
    sums = size;
    if (sums_up) size += round_up(p.m * f.blocks() * 4, 64);
    panels = size;
    if (dequantizes) panel = block_rows(f) * register_tile<float>::width * 4;
    size += panel * workers;
    if (unit_serves(p)) size = std::max(size, unit_places(p, workers).size);
  }
  /// Elements of the depth, whole blocks, that a panel holds.
  static std::int64_t block_rows(const quantized_form& f) {
    return std::max<std::int64_t>(1, dequantized_depth / f.block) * f.block;
  }
};

/// How a product is cut: tasks are `vectors` vectors of columns of a panel and some rows.
struct quantized_tasks {
  std::int64_t row_chunks, chunk_rows, vectors, columns, count;

  quantized_tasks(const quantized_problem& p, unsigned workers, bool whole_panels) {
    constexpr std::int64_t lanes = native_lanes<float>, most = register_tile<float>::vectors;
    const std::int64_t wanted = workers == 1 ? 1 : 3 * static_cast<std::int64_t>(workers);
    const std::int64_t panels = ceil_div(p.form.n, register_tile<float>::width);
    row_chunks = ceil_div(p.m, quantized_task_rows);
    if (panels * row_chunks < wanted && p.m > 64) row_chunks = std::min(ceil_div(wanted, panels), ceil_div(p.m, 32));
    chunk_rows = ceil_div(p.m, row_chunks);
    vectors = most;
    while (!whole_panels && vectors > 1 && ceil_div(p.form.n, vectors * lanes) * row_chunks < wanted) vectors /= 2;
    columns = ceil_div(p.form.n, vectors * lanes);
    count = columns * row_chunks;
  }
};

/// A product, its operands in scratch memory as the tiles read them.
template <class Machine, class Numbers> class quantized_product {
 public:
  quantized_product(thread_pool& pool, const quantized_problem& p, std::byte* scratch)
      : p_(p), f_(p.form), at_(p, pool.size()), scratch_(scratch) {
    scales_ = reinterpret_cast<float*>(scratch + at_.scales);
    byte_sums_ = reinterpret_cast<std::int32_t*>(scratch + at_.sums);
    if (at_.sums_up) sums_ = reinterpret_cast<float*>(scratch + at_.sums);
    left_ = at_.copies ? reinterpret_cast<const float*>(scratch) : p.a;
    if (!at_.copies && !at_.sums_up) return;
    if (p.m == 1)
      prepare(0);
    else
      pool.parallel_for(p.m, [&](std::int64_t r, unsigned) { prepare(r); });
  }

  bool dequantizes() const { return at_.dequantizes; }

  /// Rows [row0, row0 + rows) of the columns of one panel, whose numbers are written out in the worker's memory.
  void multiply_panel(std::int64_t row0, std::int64_t rows, std::int64_t col0, std::int64_t cols,
                      unsigned worker) const {
    auto* const panel = reinterpret_cast<float*>(scratch_ + at_.panels + worker * at_.panel);
    const quantized_columns w(f_, p_.b, col0);
    const std::int64_t each = quantized_scratch::block_rows(f_) / f_.block;
    const int vectors = static_cast<int>(w.width / lanes);
    for (std::int64_t b = 0; b < w.blocks; b += each) {
      const std::int64_t count = std::min(each, w.blocks - b);
      dequantize_panel<Numbers>(w, b, count, panel);
      even_blocks(rows, register_tile<float>::rows_of(vectors)).each([&](std::int64_t first, int group) {
        const float* row[2 * register_tile<float>::rows];
        for (int r = 0; r < group; ++r) row[r] = left_ + (row0 + first + r) * left_row() + b * f_.block;
        find_tile<float, linear_step>(group, vectors)(
            count * f_.block, row, linear_step{1}, panel, w.width, p_.c + (row0 + first) * p_.c_row + col0, p_.c_row,
            static_cast<int>(cols), b != 0, fetch_ahead{reinterpret_cast<const char*>(panel), 0}, nullptr);
      });
    }
  }
  /// `group` rows from `row`, as many as a tile has at most, of columns that a vector begins at.
  void multiply_rows(std::int64_t row, int group, std::int64_t col0, std::int64_t cols) const {
    const std::int64_t most = quantized_tile_vectors(group);
    for (std::int64_t j = 0; j < cols;) {
      const std::int64_t rest = ceil_div(cols - j, lanes);
      const auto vectors = static_cast<int>(rest >= most ? most : rest >= 2 ? 2 : 1);
      const quantized_columns w(f_, p_.b, col0 + j);
      const int stored = static_cast<int>(std::min<std::int64_t>(vectors * lanes, cols - j));
      float* const c = p_.c + row * p_.c_row + col0 + j;
      if (p_.rounds)
        multiply_bytes(w, row, group, vectors, c, stored);
      else
        multiply_floats(w, row, group, vectors, c, stored);
      j += vectors * lanes;
    }
  }

 private:
  static constexpr std::int64_t lanes = native_lanes<float>;
  static constexpr int bits = Numbers::bits;

  std::ptrdiff_t left_row() const { return at_.row / 4; }
  void prepare(std::int64_t r) const {
    const float* const x = p_.a + r * p_.a_row;
    std::byte* const to = scratch_ + r * at_.row;
    const std::int64_t block = r * f_.blocks();
    if (p_.rounds)
      round_row<bits, std::int32_t>(f_, x, {to, f_.block, f_.block, 0, scales_ + block, byte_sums_ + block});
    else
      copy_row(f_, x, at_.copies ? reinterpret_cast<float*>(to) : nullptr, sums_ ? sums_ + block : nullptr);
  }
  void multiply_bytes(const quantized_columns& w, std::int64_t row, int group, int vectors, float* c,
                      int stored) const {
    if constexpr (bits <= Machine::most_bits && std::is_same_v<Numbers, unsigned_numbers<bits>>) {
      const std::int64_t block = row * f_.blocks();
      const byte_rows x{reinterpret_cast<const std::int8_t*>(scratch_ + row * at_.row), at_.row, scales_ + block,
                        byte_sums_ + block, f_.blocks()};
      with_quantized_tile<byte_tile_rows>(group, vectors, [&]<int Rows, int Vectors>() {
        byte_tile<Machine, bits, Rows, Vectors>(w, x, c, p_.c_row, stored);
      });
    }
  }
  void multiply_floats(const quantized_columns& w, std::int64_t row, int group, int vectors, float* c,
                       int stored) const {
    const float_rows x{left_ + row * left_row(), left_row(), sums_ ? sums_ + row * f_.blocks() : nullptr, f_.blocks()};
    with_quantized_tile<float_tile_rows>(group, vectors, [&]<int Rows, int Vectors>() {
      float_tile<Numbers, Rows, Vectors>(w, x, c, p_.c_row, stored);
    });
  }

  const quantized_problem& p_;
  const quantized_form& f_;
  quantized_scratch at_;
  std::byte* scratch_;
  float *scales_ = nullptr, *sums_ = nullptr;
  std::int32_t* byte_sums_ = nullptr;
  const float* left_ = nullptr;
};

/// The same on the matrix unit.
template <class Numbers, bool Bytes, class Epilogue>
void multiply_on_unit(thread_pool& pool, const quantized_problem& p, std::byte* scratch, Epilogue&& epilogue) {
  const unit_product<Numbers, Bytes> product(pool, p, scratch);
  const quantized_tasks tasks(p, pool.size(), false);
  // tiles of rows that a task takes, and the tasks of the columns after it: they stay in L2
  const std::int64_t chunk = std::min(ceil_div(tasks.chunk_rows, product.tile_rows()), product.near_tiles());
  pool.parallel_for(tasks.columns * ceil_div(product.tiles(), chunk), [&](std::int64_t task, unsigned worker) {
    const std::int64_t tile0 = task / tasks.columns * chunk, tiles = std::min(chunk, product.tiles() - tile0);
    const std::int64_t col0 = task % tasks.columns * tasks.vectors * native_lanes<float>;
    const std::int64_t cols = std::min<std::int64_t>(tasks.vectors * native_lanes<float>, p.form.n - col0);
    product.multiply(tile0, tiles, col0, cols, worker, [&](std::int64_t row0, std::int64_t rows) {
      epilogue(row0, rows, col0, cols, p.c + row0 * p.c_row + col0, p.c_row);
    });
  });
}

/// C[m, n] = A[m, k] * B[k, n]. `epilogue(row0, rows, col0, cols, c, c_row)` is called once for each part of C that is
/// done. `Machine`: how bytes are multiplied where the problem rounds, which one of float_numbers never does.
template <class Machine, class Numbers, class Epilogue>
void quantized_gemm(thread_pool& pool, const quantized_problem& p, std::byte* scratch, Epilogue&& epilogue) {
  if (p.m <= 0 || p.form.n <= 0) return;
  if constexpr (native_bytes == 64)
    if (unit_serves(p)) {
      if constexpr (std::is_same_v<Numbers, unsigned_numbers<Numbers::bits>>)
        if (p.rounds) return multiply_on_unit<Numbers, true>(pool, p, scratch, epilogue);
      return multiply_on_unit<Numbers, false>(pool, p, scratch, epilogue);
    }
  const quantized_product<Machine, Numbers> product(pool, p, scratch);
  const quantized_tasks tasks(p, pool.size(), product.dequantizes());
  pool.parallel_for(tasks.count, [&](std::int64_t task, unsigned worker) {
    const std::int64_t row0 = task / tasks.columns * tasks.chunk_rows, rows = std::min(tasks.chunk_rows, p.m - row0);
    if (rows <= 0) return;
    const std::int64_t col0 = task % tasks.columns * tasks.vectors * native_lanes<float>;
    const std::int64_t cols = std::min<std::int64_t>(tasks.vectors * native_lanes<float>, p.form.n - col0);
    float* const c = p.c + row0 * p.c_row + col0;
    if (product.dequantizes()) {
      product.multiply_panel(row0, rows, col0, cols, worker);
      return epilogue(row0, rows, col0, cols, c, p.c_row);
    }
    even_blocks(rows, p.rounds ? byte_tile_rows : float_tile_rows).each([&](std::int64_t first, int group) {
      product.multiply_rows(row0 + first, group, col0, cols);
      epilogue(row0 + first, group, col0, cols, c + first * p.c_row, p.c_row);
    });
  });
}

}  // namespace kiln::kernels
