#pragma once

#include "kiln/kernel/amx/split_product.hpp"
#include "kiln/kernel/attention/problem.hpp"
#include "kiln/kernel/gemm/panel.hpp"
#include "kiln/kernel/simd/stored_floats.hpp"
#include "kiln/kernel/simd/sum_rows.hpp"

namespace kiln::kernels {

// Keys and values of a block, or a piece of it: `keys` of them, of which the first is number `from` of the block.
template <class Stored> struct attention_piece {
  const Stored *k = nullptr, *v = nullptr;
  std::int64_t from = 0, keys = 0;
};

// The two products of an attention, for a block of keys and values at a time: `take` packs the block, or each piece of
// it, into panels; `score` writes the products of up to `group` queries, whose rows are `q_row` apart, with the first
// `keys` of a piece, in rows of `keys_at_once`; `weigh` says that
// these scores have become weights, which stay in place until `accumulate` adds their products with the values to
// `sums`, whose rows are `sum_row` apart. There is room for `group` rows. Where products go `ahead`, a group's weights
// are multiplied by the values after the scores of the next group: two groups have scores then. `exact`: results are
// right also where scores or sums are not finite.

/// In vectors. `Stored`: how keys and values are stored.
template <class Stored> class attention_of_stored {
  using V = vec<float, native_lanes<float>>;
  static constexpr int lanes = native_lanes<float>;
  static constexpr std::int64_t panel = register_tile<float>::width;
  static constexpr bool narrow = !std::is_same_v<Stored, float>;

 public:
  using stored = Stored;
  static constexpr int group = 2 * register_tile<float>::rows;
  static constexpr bool ahead = false, exact = true;
  static std::int64_t keys_at_once(const attention_problem& p) { return p.keys_at_once; }
  static std::int64_t scratch_size(const attention_problem& p) {
    const std::int64_t packed = (p.depth + round_up(p.value_depth, lanes)) * p.keys_at_once;
    return round_up(packed + (narrow ? panel * round_up(p.depth, lanes) : 0), 16);
  }

  attention_of_stored(const attention_problem& p, float* scratch)
      : p_(p),
        packed_keys_(scratch),
        packed_values_(scratch + p.depth * p.keys_at_once),
        wide_(packed_values_ + round_up(p.value_depth, lanes) * p.keys_at_once) {}

  using piece = attention_piece<Stored>;
  /// For `rows` queries. Few of them read keys and values in place, save values of columns that fill no vector.
  void take(const piece& part, std::int64_t rows) {
    const Stored *k = part.k, *v = part.v;
    const std::int64_t keys = part.keys;
    float *const packed_keys = keys_of(part), *const packed_values = values_of(part);
    packs_keys_ = rows > 4;
    packs_values_ = rows >= (narrow ? streamed_rows + 1 : 64);
    for (std::int64_t col = 0; packs_keys_ && col < keys; col += panel) {
      const std::int64_t cols = std::min(panel, keys - col), width = round_up(cols, lanes);
      float* const to = packed_keys + col * p_.depth;
      if constexpr (narrow) {
        const std::int64_t wide_row = round_up(p_.depth, lanes);
        widen(k + col * p_.k.row, p_.k.row, wide_, wide_row, cols, p_.depth);
        pack_panel(to, width, wide_, std::ptrdiff_t{1}, wide_row, p_.depth, cols);
      } else {
        pack_panel(to, width, k + col * p_.k.row, std::ptrdiff_t{1}, p_.k.row, p_.depth, cols);
      }
    }
    for (std::int64_t col = 0; col < p_.value_depth; col += panel) {
      const std::int64_t cols = std::min(panel, p_.value_depth - col), width = round_up(cols, lanes);
      if (!packs_values_ && cols == width) continue;
      if constexpr (narrow)
        widen(v + col, p_.v.row, packed_values + col * keys, width, keys, cols);
      else
        pack_panel(packed_values + col * keys, width, v + col, p_.v.row, std::ptrdiff_t{1}, keys, cols);
    }
  }

  void score(float* scores, const float* q, std::ptrdiff_t q_row, std::int64_t rows, const piece& part,
             std::int64_t keys) const {
    const Stored* const k = part.k;
    scores += part.from;
    if (!packs_keys_) {
      for (std::int64_t j = 0; j < keys; j += lanes) {
        fetch_after(k, j, p_.k.row, p_.depth, 2 * lanes);
        fetch_after(part.v, j, p_.v.row, p_.value_depth, 0);
        for (std::int64_t r = 0; r < rows; ++r)
          store(scores + r * p_.keys_at_once + j, inner(q + r * q_row, k + j * p_.k.row, keys - j));
      }
      return;
    }
    for (std::int64_t col = 0; col < keys; col += panel) {
      const std::int64_t cols = std::min(panel, keys - col);
      // the panel may be wider than the keys that these rows see
      const std::int64_t width = round_up(std::min(panel, part.keys - col), lanes);
      multiply_panel<float>(p_.depth, q, q_row, rows, linear_step{1}, keys_of(part) + col * p_.depth, width,
                            scores + col, p_.keys_at_once, static_cast<int>(cols), false, {}, [](std::int64_t, int) {});
    }
  }

  void weigh(const float*, std::int64_t, std::int64_t) {}
  void accumulate(const float* weights, std::int64_t rows, const piece& part, std::int64_t keys, float* sums,
                  std::int64_t sum_row, bool adds) const {
    const Stored* const v = part.v;
    weights += part.from;
    const auto nothing = [](std::int64_t, int) {};
    for (std::int64_t col = 0; col < p_.value_depth; col += panel) {
      const int cols = static_cast<int>(std::min(panel, p_.value_depth - col));
      const std::int64_t width = round_up(cols, lanes);
      if (packs_values_ || cols != width)
        multiply_panel<float>(keys, weights, p_.keys_at_once, rows, linear_step{1}, values_of(part) + col * part.keys,
                              width, sums + col, sum_row, cols, adds, {}, nothing);
      else if constexpr (narrow)
        multiply_few_rows(keys, weights, p_.keys_at_once, static_cast<int>(rows), linear_step{1}, v + col, p_.v.row,
                          sums + col, sum_row, cols, adds, false, nothing);
      else
        multiply_panel<float>(keys, weights, p_.keys_at_once, rows, linear_step{1}, v + col, p_.v.row, sums + col,
                              sum_row, cols, adds, {}, nothing);
    }
  }

 private:
  float* keys_of(const piece& part) const { return packed_keys_ + part.from * p_.depth; }
  float* values_of(const piece& part) const { return packed_values_ + part.from * round_up(p_.value_depth, lanes); }
  // Prefetches the rows of a vector of keys, `ahead` after row j: few queries wait for memory, whose own prefetchers do
  // not follow short rows. The values of a block of keys come while these are scored.
  static void fetch_after(const Stored* from, std::int64_t j, std::ptrdiff_t row, std::int64_t depth,
                          std::int64_t ahead) {
    constexpr std::int64_t line = 64 / sizeof(Stored);
    for (int i = 0; i < lanes; ++i)
      for (std::int64_t c = 0; c < depth; c += line) __builtin_prefetch(from + (j + ahead + i) * row + c, 0, 2);
  }
  // Rows of stored numbers as floats; those of `to` are filled up with zeros to whole vectors.
  static void widen(const Stored* from, std::ptrdiff_t from_row, float* to, std::int64_t to_row, std::int64_t rows,
                    std::int64_t cols) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const Stored* const in = from + r * from_row;
      float* const out = to + r * to_row;
      std::int64_t j = 0;
      for (; j + lanes <= cols; j += lanes) store(out + j, load_stored<V>(in + j));
      if (j < cols) store(out + j, load_stored_n<V>(in + j, static_cast<int>(cols - j)));
    }
  }
  // The inner products of a query with one key per lane; lanes beyond `keys` are unspecified.
  V inner(const float* q, const Stored* k, std::int64_t keys) const {
    const Stored* key[lanes];
    V sum[lanes] = {};
    for (int i = 0; i < lanes; ++i) key[i] = k + std::min<std::int64_t>(i, keys - 1) * p_.k.row;
    std::int64_t c = 0;
    for (; c + lanes <= p_.depth; c += lanes) {
      const V part = load<V>(q + c);
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) sum[i] = multiply_add(part, load_stored<V>(key[i] + c), sum[i]);
    }
    if (c < p_.depth) {
      const int rest = static_cast<int>(p_.depth - c);
      const V part = load_n<V>(q + c, rest);
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) sum[i] = multiply_add(part, load_stored_n<V>(key[i] + c, rest), sum[i]);
    }
    return sum_rows<lanes>(sum);
  }

  const attention_problem& p_;
  float *packed_keys_, *packed_values_, *wide_;
  bool packs_keys_ = false, packs_values_ = false;
};

/// In vectors, of floats.
using attention_in_vectors = attention_of_stored<float>;

/// On the matrix unit, of split floats. Weights are split between the products of the next group's scores.
class attention_on_matrix_unit {
  using V = vec<float, native_lanes<float>>;
  static constexpr std::int64_t panel = 4 * matrix_unit::cols, pair = 2 * matrix_unit::cols;

 public:
  using stored = float;
  static constexpr int group = 2 * matrix_unit::rows;
  static constexpr bool ahead = true, exact = false;
  /// Queries of a task; keys and values are split once for all of them.
  static constexpr std::int64_t least_rows = 64;
  /// Whether the processor has a matrix unit, which is checked first, and an attention gains from it.
  static bool serves(const attention_problem& p) {
    constexpr std::int64_t least_depth = matrix_unit::depth;
    return p.stored == dtype::f32 && p.queries >= least_rows && p.keys >= panel && p.depth >= least_depth &&
           p.value_depth >= least_depth && matrix_unit::available();
  }
  /// Queries of a group, whose scores stay in L1.
  static std::int64_t keys_at_once(const attention_problem& p) { return std::min<std::int64_t>(p.keys_at_once, 256); }
  static std::int64_t scratch_size(const attention_problem& p) { return places(p).all / 2 + p.depth * panel; }

  attention_on_matrix_unit(const attention_problem& p, float* scratch)
      : p_(p), at_(p), split_(reinterpret_cast<std::uint16_t*>(scratch)), panel_(scratch + at_.all / 2) {}

  using piece = attention_piece<float>;
  void take(const piece& part, std::int64_t) {  // a whole block
    const float *k = part.k, *v = part.v;
    const std::int64_t keys = keys_ = part.keys;
    keys_one_ = true;
    for (std::int64_t col = 0; col < keys; col += panel) {
      const std::int64_t cols = std::min(panel, keys - col), width = round_up(cols, native_lanes<float>);
      pack_panel(panel_, width, k + col * p_.k.row, std::ptrdiff_t{1}, p_.k.row, p_.depth, cols);
      keys_one_ &= split(tile_splitter::of_columns(panel_, width, p_.depth, cols, key_tiles(col)));
    }
    values_one_ = split(tile_splitter::of_columns(v, p_.v.row, keys, p_.value_depth, split_ + at_.values));
  }

  void score(float* scores, const float* q, std::ptrdiff_t q_row, std::int64_t rows, const piece&, std::int64_t keys) {
    const bool one = split(tile_splitter::of_rows(q, q_row, rows, p_.depth, split_));
    const std::int64_t steps = depth_tiles(p_.depth), row = keys_at_once(p_);
    std::int64_t left = ceil_div(keys, pair);
    for (std::int64_t col = 0; col < keys; col += pair, --left) {
      const std::int64_t quarters = weights_split_.quarters_left();
      background_split meanwhile(weights_split_, quarters - ceil_div(quarters, left), none_, 0,
                                 turns_of_step(one, keys_one_) * steps);
      multiply(rows, std::min(pair, keys - col), one, keys_one_, split_, key_tiles(col), steps, steps, scores + col,
               row, false, meanwhile);
    }
  }

  /// After `keys`, up to a whole tile, weights are zeros.
  void weigh(const float* weights, std::int64_t rows, std::int64_t keys) {
    weights_split_ = tile_splitter::of_rows(weights, keys_at_once(p_), rows, round_up(keys, matrix_unit::depth),
                                            split_ + at_.weights);
  }
  void accumulate(const float*, std::int64_t rows, const piece&, std::int64_t keys, float* sums, std::int64_t sum_row,
                  bool adds) {
    weights_split_.finish();
    background_split nothing(none_, 0, none_, 0, 1);
    const std::int64_t steps = depth_tiles(keys), all = depth_tiles(keys_);
    for (std::int64_t col = 0; col < p_.value_depth; col += pair)
      multiply(rows, std::min(pair, p_.value_depth - col), false, values_one_, split_ + at_.weights,
               split_ + at_.values + col / matrix_unit::cols * all * split_tile_size, steps, all, sums + col, sum_row,
               adds, nothing);
  }

 private:
  // Where split floats are stored; the queries are first.
  struct places {
    std::int64_t keys, values, weights, all;
    explicit places(const attention_problem& p) {
      const std::int64_t most = keys_at_once(p), depth = round_up(p.depth, matrix_unit::depth);
      keys = group * depth * float_parts;
      values = keys + most * depth * float_parts;
      weights = values + most * round_up(p.value_depth, matrix_unit::cols) * float_parts;
      all = weights + group * most * float_parts;
    }
  };
  std::uint16_t* key_tiles(std::int64_t col) const {
    return split_ + at_.keys + col / matrix_unit::cols * depth_tiles(p_.depth) * split_tile_size;
  }
  // Whether one part is all of it.
  static bool split(tile_splitter operand) {
    operand.finish();
    return operand.one_part();
  }
  // `right_steps`: steps between the right operand's column tiles.
  static void multiply(std::int64_t rows, std::int64_t cols, bool left_one, bool right_one, const std::uint16_t* left,
                       const std::uint16_t* right, std::int64_t steps, std::int64_t right_steps, float* c,
                       std::ptrdiff_t c_row, bool adds, background_split& meanwhile) {
    multiply_split(ceil_div(rows, matrix_unit::rows), ceil_div(cols, matrix_unit::cols), left_one, right_one, left,
                   right, steps, right_steps * split_tile_size, c, c_row, adds, meanwhile);
  }

  const attention_problem& p_;
  const places at_;
  std::uint16_t* split_;
  float* panel_;
  std::int64_t keys_ = 0;
  bool keys_one_ = false, values_one_ = false;
  tile_splitter weights_split_, none_;
  const matrix_unit_session session_;
};

}  // namespace kiln::kernels
