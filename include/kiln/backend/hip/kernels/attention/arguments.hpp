#pragma once
#include "kiln/backend/hip/kernels/gemm/arguments.hpp"

// What kernels of attention are passed and how their blocks divide shared memory; host and device include this header
// (see gemm/arguments.hpp).

namespace kiln::gpu {

/// Attention in tiles with a running softmax (Milakov and Gimelshein 2018; Dao et al. 2022): out[b, h, i] = sum over j
/// of softmax_j(scale * q[b, h, i] . k[b, g, j] + mask[b, h, i, j]) v[b, g, j] with g = h / group. Steps count elements
/// along batch, head and row; the last dim is contiguous. The heads of a group are rows of one matrix, so that a key is
/// read once for all of them (Ainslie et al. 2023).
struct attention_sizes {
  int heads, group, queries, keys, depth, value_depth;
  int tiles;   ///< of rows, for one group
  int splits;  ///< blocks that share a tile, each a range of the keys
  float scale;
  int groups;      ///< batch entries times key heads
  float* partial;  ///< splits > 1: `split_floats` per tile and split
  int* arrivals;   ///< splits > 1: one counter a tile, zero before and after; on wgmma one, zero before, or null
  int section;     ///< on wgmma: groups whose tiles are worked together, the last tile of all of them first
};

template <class T> struct attention_operand {
  T* base;
  i64 batch, head, row;
};

/// The sequences of attention over blocks (op/nn/block_attention.hpp): rows of `width` words, a word each for where
/// their tokens stand, how many these are, the first one's position and the positions before the run, then counters,
/// zero before and after, and from word `head` on addresses. `keys` and `values` count bytes from a block's begin.
struct block_table {
  i64* rows;
  i64 width, head, keys, values;
  int window;
  float softcap;       ///< 0: none
  const float* sinks;  ///< null: none
  int sink_step;
  static constexpr int first = 0, tokens = 1, position = 2, past = 3, counters = 4;
};

/// Rows of the tile that a row of the table is, with the heads that share keys, on matrix units.
inline constexpr int block_attention_rows = 64;

static_assert(sizeof(block_table) == 64 && sizeof(attention_operand<void>) == 32 && sizeof(attention_sizes) == 64);

/// What a split leaves of a row: its sums, their base and their total.
constexpr int split_row(int value_depth) { return value_depth + 2; }
constexpr int split_floats(int rows, int value_depth) { return rows * split_row(value_depth); }
/// Bytes of shared memory before the weights by which a block joins splits: whether it is the last one.
inline constexpr int split_flag_bytes = 16;

/// The shared memory of a block: `rows` of queries, `keys` of a step, elements of `size` bytes. Steps and stages count
/// elements, offsets bytes.
struct attention_memory {
  int rows, keys, depth, value_depth, size;

  constexpr int step_k() const { return depth + tile_pad(size); }
  constexpr int step_v() const { return value_depth + tile_pad(size); }
  /// Queries first, results at last.
  constexpr int staged_row() const { return step_k() > step_v() ? step_k() : step_v(); }

  // attention_in_registers: queries, then stages of keys and values; where each of some warps has its own, what these
  // leave afterwards, and its weights
  constexpr int stage() const { return keys * (step_k() + step_v()); }
  static constexpr int stages(int parts) { return parts > 1 ? 3 : 2; }
  constexpr int bytes_in_registers(int parts = 1) const {
    const int copied = (rows * staged_row() + parts * stages(parts) * stage()) * size,
              left = parts > 1 ? parts * (split_floats(rows, value_depth) + rows) * 4 : 0;
    return copied > left ? copied : left;
  }

  // attention_on_wgmma: two tiles of queries, stages of keys, then of values, all in blocks of lines of 64 elements,
  // results, then two barriers for each of those that are copied, and the numbers of the two tiles
  static constexpr int unit = 64;  ///< rows that a group of four warps works
  constexpr int wgmma_width() const { return (depth + 63) / 64 * 64; }
  constexpr int wgmma_stages() const { return depth + value_depth > 128 ? 2 : 4; }
  constexpr int wgmma_queries() const { return rows * wgmma_width(); }
  constexpr int wgmma_keys_at() const { return 2 * wgmma_queries() * size; }
  constexpr int wgmma_values_at() const { return wgmma_keys_at() + wgmma_stages() * keys * wgmma_width() * size; }
  constexpr int wgmma_results_at() const { return wgmma_values_at() + wgmma_stages() * keys * value_depth * size; }
  constexpr int wgmma_barriers_at() const { return wgmma_results_at() + rows * step_v() * size; }
  constexpr int bytes_on_wgmma() const { return wgmma_barriers_at() + (4 + 4 * wgmma_stages() + 1) * 8; }

  // attention_simt: queries, keys, values, weights as floats
  constexpr int vector_weights_at() const { return values_at() + keys * step_v() * size; }
  constexpr int bytes_simt() const { return vector_weights_at() + rows * step_s() * 4; }

  // attention_staged: queries, keys, values, weights, scores, and three floats a row
  constexpr int step_p() const { return keys + tile_pad(size); }
  constexpr int step_s() const { return staging_step(keys); }
  constexpr int keys_at() const { return rows * step_k() * size; }
  constexpr int values_at() const { return keys_at() + keys * step_k() * size; }
  constexpr int weights_at() const { return values_at() + keys * step_v() * size; }
  constexpr int scores_at() const { return weights_at() + rows * step_p() * size; }
  constexpr int row_values_at() const { return scores_at() + rows * step_s() * 4; }
  constexpr int bytes_staged() const { return row_values_at() + rows * 3 * 4; }
};

}  // namespace kiln::gpu
