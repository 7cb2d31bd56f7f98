#pragma once

#include "kiln/kernel/amx/split_product.hpp"
#include "kiln/kernel/gemm/operands.hpp"

namespace kiln::kernels {

/// Estimated ns that one core with a matrix unit takes for a product of such sizes, or a part of one, whose operands
/// are split `left_times` and `right_times`: splitting takes 0.2 for an element, and each element of the result 0.15
/// more than in vectors. `fetch`: ns to fetch an element of the left operand before it is split.
constexpr double matrix_unit_time(std::int64_t m, std::int64_t n, std::int64_t k, double left_times, double right_times,
                                  double fetch) {
  constexpr double split = 0.2, store = 0.15, tile_rate = 420;  // GFLOP/s
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  const double tiles = 2 * real(round_up(m, matrix_unit::rows)) * real(round_up(n, matrix_unit::cols)) *
                       real(round_up(k, matrix_unit::depth)) / tile_rate;
  return tiles + real(k) * ((split + fetch) * left_times * real(m) + split * right_times * real(n)) +
         store * real(m) * real(n);
}

/// How a GEMM is cut into tasks on a matrix unit: a chunk of rows of one matrix and a few panels of columns, whose
/// blocks of the depth are split and multiplied one after the other. Depths are cut so that the split rows of two tiles
/// stay in L1, chunks and groups so that the last worker ends early: neither operand is split often, all workers have
/// equally much, and a worker has the rows that it wrote in the layer before. The worker's split operands stay in its
/// L2.
struct split_schedule {
  static constexpr std::int64_t panel = 4 * matrix_unit::cols, most_rows = 256, most_steps = 5, most_panels = 16;
  static constexpr std::int64_t least_rows = 48;
  std::int64_t chunks = 0, chunk_rows = 0, panels, group_panels = 0, groups = 0, blocks, block_steps;

  /// A chunk has at most `rows_at_once` rows.
  split_schedule(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch, unsigned workers,
                 std::int64_t rows_at_once, double fetch = 0)
      : panels(ceil_div(n, panel)) {
    const std::int64_t steps = depth_tiles(k);
    blocks = ceil_div(steps, most_steps);
    block_steps = ceil_div(steps, blocks);
    blocks = ceil_div(steps, block_steps);
    const std::int64_t rows_at_most = std::min(rows_at_once, most_rows), many = workers, few = 8 * many;
    const std::int64_t least_chunks = ceil_div(m, rows_at_most), least_groups = ceil_div(panels, most_panels);
    // ns to read an element that another core wrote, or to write where it read: those of the other panels' columns.
    constexpr double handed_over = 0.25;
    const auto across = [&](std::int64_t of_cols, std::int64_t cols) {
      return handed_over * static_cast<double>(m) * static_cast<double>(k + cols) *
             (1 - 1 / static_cast<double>(of_cols));
    };
    const double even =
        static_cast<double>(batch) / static_cast<double>(many) *
        matrix_unit_time(m, n, k, static_cast<double>(least_groups), static_cast<double>(least_chunks), fetch);
    double shortest = std::numeric_limits<double>::infinity();
    for (std::int64_t c = least_chunks; c == least_chunks || c * least_rows <= m; ++c) {
      // Equal chunks of each worker are no fewer tiles' rows for the last one where they end within a tile.
      const std::int64_t equal = ceil_div(m, c);
      const std::int64_t rows =
          std::min(batch == 1 && many > 1 && c % many == 0 ? equal : round_up(equal, matrix_unit::rows), rows_at_most);
      const std::int64_t of_rows = ceil_div(m, rows);
      for (std::int64_t g = least_groups; g <= panels; ++g) {
        const std::int64_t each = ceil_div(panels, g), of_cols = ceil_div(panels, each),
                           tasks = batch * of_rows * of_cols;
        // Many tasks balance themselves; of few, the worker with the most of the longest ends last.
        const double all = static_cast<double>(batch) *
                           matrix_unit_time(m, n, k, static_cast<double>(of_cols), static_cast<double>(of_rows), fetch);
        const double one = matrix_unit_time(std::min(m, rows), std::min(n, each * panel), k, 1, 1, fetch);
        // Of one matrix and fewer chunks than workers, these take columns of the same rows.
        const double moved = batch == 1 && of_rows < many ? across(of_cols, std::min(n, each * panel)) : 0;
        const double time = moved + std::max(all / static_cast<double>(many),
                                             tasks < few ? static_cast<double>(ceil_div(tasks, many)) * one : 0);
        if (time < shortest) {
          shortest = time;
          chunks = of_rows, chunk_rows = rows, groups = of_cols, group_panels = each;
          if (shortest <= 1.02 * even) return;  // no other cut gains
        }
        if (tasks >= few) break;
      }
      if (batch * of_rows * least_groups >= few) break;
    }
  }
};

/// A worker's scratch for split operands and sums; each member takes whole cache lines.
struct split_scratch {
  static constexpr std::int64_t depth = split_schedule::most_steps * matrix_unit::depth;
  static constexpr std::int64_t pair = 2 * matrix_unit::rows;
  /// Pairs of tiles of rows: one more than a chunk has, for the first one of the next block.
  static constexpr std::int64_t pairs = split_schedule::most_rows / pair + 1;
  std::uint16_t left[pairs][pair * depth * float_parts];
  std::uint16_t right[2][split_schedule::panel * depth * float_parts];
  float panel[depth * pair];
  float sums[pair * pair];
};
static_assert(sizeof(split_scratch) % 64 == 0);

/// Whether a matrix unit takes products of such sizes: smaller ones do not recover the cost of splitting.
template <class T> constexpr bool fits_matrix_unit(std::int64_t m, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t least = 32;
  return std::is_same_v<T, float> && m >= least && n >= least && k >= least;
}
/// Whether the processor has a matrix unit, too.
template <class T> bool matrix_unit_serves(std::int64_t m, std::int64_t n, std::int64_t k) {
  return fits_matrix_unit<T>(m, n, k) && matrix_unit::available();
}

/// The speedup of a matrix unit over vectors for a product of such sizes; 1 where vectors compute it. `fetch` as in
/// `matrix_unit_time`.
template <class T> constexpr double matrix_unit_gain(std::int64_t m, std::int64_t n, std::int64_t k, double fetch) {
  constexpr double vector_rate = 195;  // GFLOP/s
  if (!fits_matrix_unit<T>(m, n, k)) return 1;
  const auto times = [](std::int64_t of, std::int64_t most) { return static_cast<double>(ceil_div(of, most)); };
  const double on_unit = matrix_unit_time(m, n, k, times(n, split_schedule::most_panels * split_schedule::panel),
                                          times(m, split_schedule::most_rows), fetch);
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  const double in_vectors = 2 * real(m) * real(n) * real(k) / vector_rate;
  return 1.1 * on_unit < in_vectors ? in_vectors / on_unit : 1;
}

/// Whether a product gains from the matrix unit.
template <class T> bool gains_from_matrix_unit(const gemm_problem<T>& p) {
  return p.matrix_unit && p.a_col == 1 && matrix_unit::available() && matrix_unit_gain<T>(p.m, p.n, p.k, p.fetch) > 1;
}

/// Elements of scratch, aligned to 64 bytes, for each worker of a product that the matrix unit may take; 0 where it
/// cannot.
template <class T> std::int64_t matrix_unit_scratch_size(std::int64_t m, std::int64_t n, std::int64_t k) {
  return matrix_unit_serves<T>(m, n, k) ? static_cast<std::int64_t>(sizeof(split_scratch) / sizeof(T)) : 0;
}

/// Adds `rows` x `cols` sums, in rows of 32, to C where `accumulate` says so, applies `epilogue` where it is not null,
/// and stores them. Whether all were finite.
inline bool store_sums(const float* sums, std::int64_t rows, std::int64_t cols, float* c, std::ptrdiff_t c_row,
                       bool accumulate, const tile_epilogue<float>* epilogue) {
  using V = native_vec<float>;
  constexpr int lanes = native_lanes<float>;
  V check{};  // a sum that is not finite, times zero, is NaN
  for (std::int64_t col = 0; col < cols; col += lanes) {
    const int n = static_cast<int>(std::min<std::int64_t>(lanes, cols - col));
    tile_epilogue<float> of_column;
    if (epilogue) of_column = epilogue->at_column(col);
    const auto run = [&]<int Rows>(std::int64_t row) __attribute__((always_inline)) {
      V sum[Rows][1];
      float* const at = c + row * c_row + col;
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        sum[r][0] = load<V>(sums + (row + r) * split_scratch::pair + col);
        if (accumulate) sum[r][0] += load_n<V>(at + r * c_row, n);
      }
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) check = multiply_add(sum[r][0], V{}, check);
      if (epilogue) {
        apply_epilogue<float, Rows, 1>(sum, of_column, n);
        of_column.advance(Rows);
      }
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        if (n == lanes)
          store(at + r * c_row, sum[r][0]);
        else
          store_n(at + r * c_row, sum[r][0], n);
      }
    };
    std::int64_t row = 0;
    for (; row + 4 <= rows; row += 4) run.template operator()<4>(row);
    for (; row < rows; ++row) run.template operator()<1>(row);
  }
  float lane[native_lanes<float>];
  store(lane, check);
  return std::none_of(std::begin(lane), std::end(lane), [](float x) { return x != x; });
}

/// A task on the matrix unit: some rows of one matrix and some panels of columns. The products run over blocks of the
/// depth, panels, and pairs of tiles of columns and rows; between them, the next pair of row tiles that is not split
/// yet and the next panel are split.
template <class Left, class Right, class Epilogue> class split_task {
 public:
  struct range {
    std::int64_t begin, end;
    std::int64_t size() const { return end - begin; }
  };
  split_task(const gemm_problem<float>& p, const split_schedule& cut, const Left& left, const Right& right,
             split_scratch& own, Epilogue& epilogue, std::int64_t matrix, range rows, range cols, unsigned worker)
      : p_(p),
        cut_(cut),
        lefts_(left),
        rights_(right),
        own_(own),
        epilogue_(epilogue),
        matrix_(matrix),
        place_(p.place(matrix)),
        rows_(rows),
        cols_(cols),
        pairs_(ceil_div(rows.size(), split_scratch::pair)),
        worker_(worker) {}

  void run() {
    const matrix_unit_session session;
    begin_rows(0, 0);
    begin_panel(0, cols_.begin);
    rows_split_.finish();
    for (std::int64_t block = 0; block < cut_.blocks; ++block)
      for (std::int64_t col = cols_.begin; col < cols_.end; col += panel) run_panel(block, col);
  }

 private:
  static constexpr std::int64_t panel = split_schedule::panel, pair = split_scratch::pair;

  std::int64_t first(std::int64_t block) const { return block * cut_.block_steps * matrix_unit::depth; }
  std::int64_t depth(std::int64_t block) const { return std::min(first(block + 1), p_.k) - first(block); }
  std::int64_t width(std::int64_t col) const { return std::min(panel, p_.n - col); }
  std::int64_t slot(std::int64_t block, std::int64_t i) const { return (block * pairs_ + i) % (pairs_ + 1); }

  // Begins to split pair i of row tiles.
  void begin_rows(std::int64_t block, std::int64_t i) {
    if (i == 0) left_ = left_at(block);
    rows_split_ =
        tile_splitter::of_rows(left_.at + i * pair * left_.step, left_.step, std::min(pair, rows_.size() - i * pair),
                               depth(block), own_.left[slot(block, i)]);
  }
  left_block<float> left_at(std::int64_t block) const {
    return lefts_.block(place_.of, rows_.begin, rows_.size(), first(block), depth(block), worker_);
  }
  // Begins to split the panel.
  void begin_panel(std::int64_t block, std::int64_t col) {
    const panel_block<float> from = panel_at(block, col);
    panel_split_ = tile_splitter::of_columns(from.at, from.step, depth(block), width(col), own_.right[1 - side_]);
  }
  panel_block<float> panel_at(std::int64_t block, std::int64_t col) const {
    const panel_block<float> at = rights_.block(matrix_, col, width(col), first(block), depth(block), worker_);
    return at.source ? panel_block<float>{at.source, at.source_step} : at;
  }

  void run_panel(std::int64_t block, std::int64_t col) {
    const std::int64_t steps = depth_tiles(depth(block)), cols = width(col);
    const bool first_panel = col == cols_.begin, last_panel = col + panel >= cols_.end;
    const bool last = block + 1 == cut_.blocks;
    panel_split_.finish();
    right_one_ = panel_split_.one_part();
    side_ = 1 - side_;
    if (!last_panel)
      begin_panel(block, col + panel);
    else if (!last)
      begin_panel(block + 1, cols_.begin);
    else
      panel_split_ = {};
    const std::int64_t quarters = panel_split_.quarters_left(), halves = ceil_div(cols, pair), parts = halves * pairs_;
    for (std::int64_t part = 0; part < parts; ++part) {
      // One pair of column tiles stays in L1 while it meets all rows, except in the first panel, where the products of
      // all columns leave more time for splitting rows.
      const std::int64_t i = first_panel ? quotient(part, halves) : part % pairs_;
      const std::int64_t x = first_panel ? part - i * halves : quotient(part, pairs_);
      if (first_panel && x == 0) {
        rows_split_.finish();
        left_one_[slot(block, i)] = rows_split_.one_part();
        if (i + 1 < pairs_) begin_rows(block, i + 1);
      }
      if (last_panel && part + 1 == parts && !last) begin_rows(block + 1, 0);
      const std::int64_t rows_to_come = first_panel ? halves - 1 - x : 0;
      background_split meanwhile(rows_split_, rows_split_.quarters_left() * rows_to_come / (rows_to_come + 1),
                                 panel_split_, quarters * (parts - 1 - part) / parts,
                                 turns_of_step(left_one_[slot(block, i)], right_one_) * steps);
      multiply_pair(block, col, x * pair, i, meanwhile);
    }
  }

  // `x` counts columns of the panel.
  void multiply_pair(std::int64_t block, std::int64_t panel_col, std::int64_t x, std::int64_t i,
                     background_split& meanwhile) {
    const std::int64_t row = i * pair, rows = std::min(pair, rows_.size() - row);
    const std::int64_t col = panel_col + x, cols = std::min(pair, width(panel_col) - x);
    const std::int64_t steps = depth_tiles(depth(block));
    const bool last = block + 1 == cut_.blocks, accumulate = block != 0;
    float* const c = place_.c + (rows_.begin + row) * p_.c_row + col;
    const panel_epilogue<float, Epilogue> of_pair{epilogue_, last,    matrix_ * p_.m + rows_.begin + row, col, cols,
                                                  c,         p_.c_row};
    // Until the last block, sums of whole tiles accumulate in C; those of partial tiles accumulate in the same order,
    // so that they do not depend on how rows are cut into chunks.
    const bool in_place = !last && rows % matrix_unit::rows == 0 && cols % matrix_unit::cols == 0;
    const bool continues = !last && accumulate;
    for (std::int64_t r = 0; continues && !in_place && r < rows; ++r)
      std::copy_n(c + r * p_.c_row, cols, own_.sums + r * pair);
    multiply_split(ceil_div(rows, matrix_unit::rows), ceil_div(cols, matrix_unit::cols), left_one_[slot(block, i)],
                   right_one_, own_.left[slot(block, i)],
                   own_.right[side_] + x / matrix_unit::cols * steps * split_tile_size, steps, steps * split_tile_size,
                   in_place ? c : own_.sums, in_place ? p_.c_row : pair, continues, meanwhile);
    if (in_place) return;
    tile_epilogue<float> inside{.activates = true};
    const bool applied = last && of_pair.in_registers(0, rows, inside);
    const bool finite = store_sums(own_.sums, rows, cols, c, p_.c_row, accumulate && last, applied ? &inside : nullptr);
    if (!last) return;
    if (!finite)
      multiply_in_vectors(panel_col, x, row, rows, cols, c, of_pair);
    else if (!applied)
      of_pair(0, static_cast<int>(rows));
    else if (inside.then)
      activate(inside.then, c, p_.c_row, rows, cols);
  }

  // Recomputes the sums as vectors do elsewhere: infinities have no bf16 parts, and the parts of a sum that exceeds all
  // floats may overflow in both directions.
  template <class OfPair>
  void multiply_in_vectors(std::int64_t panel_col, std::int64_t x, std::int64_t row, std::int64_t rows,
                           std::int64_t cols, float* c, const OfPair& of_pair) {
    panel_split_.finish();  // it may read what `panel_at` overwrites
    const std::int64_t whole = round_up(cols, native_lanes<float>);
    for (std::int64_t block = 0; block < cut_.blocks; ++block) {
      const left_block<float> left = left_at(block);
      const panel_block<float> right = panel_at(block, panel_col);
      pack_panel(own_.panel, whole, right.at + x, right.step, 1, depth(block), cols);
      const panel_epilogue<float, Epilogue> at_end{
          of_pair.epilogue, block + 1 == cut_.blocks, of_pair.row0, of_pair.col0, cols, c, p_.c_row};
      multiply_panel(depth(block), left.at + row * left.step, left.step, rows, linear_step{1}, own_.panel, whole, c,
                     p_.c_row, static_cast<int>(cols), block != 0, {}, at_end);
    }
  }

  const gemm_problem<float>& p_;
  const split_schedule& cut_;
  const Left& lefts_;
  const Right& rights_;
  split_scratch& own_;
  Epilogue& epilogue_;
  std::int64_t matrix_;
  gemm_problem<float>::matrix_place place_;
  range rows_, cols_;
  std::int64_t pairs_;
  unsigned worker_;
  int side_ = 0;                                                  // of the split panel that is multiplied
  bool right_one_ = false, left_one_[split_scratch::pairs] = {};  // have one part: that panel, and pairs of row tiles
  left_block<float> left_{};
  tile_splitter rows_split_, panel_split_;
};

/// As `multiply`, on the matrix unit, with chunks of at most `most_rows` rows; k > 0. `scratch` holds a `split_scratch`
/// for each worker. Where sums are not finite, they and their neighbors are computed again in vectors. The operands and
/// the epilogue, which are called in between, must not use the unit's tile registers.
template <class Left, class Right, class Epilogue>
void multiply_on_matrix_unit(thread_pool& pool, const gemm_problem<float>& p, const Left& left, const Right& right,
                             float* scratch, std::int64_t most_rows, Epilogue&& epilogue) {
  constexpr std::int64_t width = split_schedule::panel;
  const split_schedule cut(p.m, p.n, p.k, p.batch, pool.size(), most_rows, p.fetch);
  pool.parallel_for(p.batch * cut.chunks * cut.groups, [&](std::int64_t task, unsigned worker) {
    const std::int64_t chunks = quotient(task, cut.groups), group = task - chunks * cut.groups;
    const std::int64_t matrix = quotient(chunks, cut.chunks), chunk = chunks - matrix * cut.chunks;
    const std::int64_t row = chunk * cut.chunk_rows, col = group * cut.group_panels * width;
    split_task(p, cut, left, right, reinterpret_cast<split_scratch*>(scratch)[worker], epilogue, matrix,
               {row, std::min(p.m, row + cut.chunk_rows)}, {col, std::min(p.n, col + cut.group_panels * width)}, worker)
        .run();
  });
}

/// Multiplies on the matrix unit if that gains; returns whether it did.
template <class T, class Left, class Right, class Epilogue>
bool multiplied_on_matrix_unit(thread_pool& pool, const gemm_problem<T>& p, const Left& left, const Right& right,
                               T* scratch, std::int64_t most_rows, Epilogue&& epilogue) {
  if constexpr (std::is_same_v<T, float>) {
    if (!gains_from_matrix_unit(p)) return false;
    multiply_on_matrix_unit(pool, p, left, right, scratch, most_rows, epilogue);
    return true;
  }
  return false;
}

}  // namespace kiln::kernels
