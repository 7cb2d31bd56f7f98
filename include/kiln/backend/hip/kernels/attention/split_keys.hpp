#pragma once
#include "kiln/backend/hip/kernels/attention/attention.hpp"

namespace kiln::gpu {

/// What blocks leave that share a tile of rows, each a range of the keys: the sums of every row, their base and their
/// total. The block that arrives last makes the results of all.
template <class T, class Tile, int Rows, int Threads> struct split_sums {
  static constexpr int width = split_row(Tile::value_depth), floats = split_floats(Rows, Tile::value_depth);
  const attention_block<T, Tile, Rows, Threads>& block;
  const attention_sizes& s;
  int tile;

  KILN_FN i64 tile_at() const { return static_cast<i64>(block.group) * s.tiles + tile; }
  KILN_FN float* all() const { return s.partial + tile_at() * s.splits * floats; }

  /// Writes a warp's rows, `warp_row` the first of them in the tile.
  template <class Softmax, class Sums>
  KILN_FN void leave(const Softmax& softmax, Sums& sums, int split, int warp_row) const {
    float* own = all() + static_cast<i64>(split) * floats;
    const int lane = lane_index();
    KILN_UNROLL
    for (int r = 0; r < Softmax::count; ++r) {
      const int row = warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4;
      if (row >= block.rows()) continue;
      float* to = own + row * width;
      if (lane % 4 == 0) to[0] = softmax.top[r], to[1] = softmax.total[r];
      KILN_UNROLL
      for (int n = 0; n < Tile::value_depth / 16; ++n) KILN_UNROLL
      for (int e = 0; e < 4; ++e) to[2 + n * 16 + e / 2 * 8 + lane % 4 * 2 + e % 2] = softmax.score(sums, r, n, e);
    }
  }
  /// Whether all other blocks of the tile have left theirs.
  KILN_FN bool is_last(char* shared) const {
    fence_device();
    sync_block();
    int* flag = reinterpret_cast<int*>(shared);
    if (thread_index() == 0) *flag = atomic_add(s.arrivals + tile_at(), 1) == s.splits - 1;
    sync_block();
    if (!*flag) return false;
    fence_device();
    if (thread_index() == 0) s.arrivals[tile_at()] = 0;
    return true;
  }
  KILN_FN void join(const attention_operand<T>& out, char* shared) const {
    const int here = block.rows();
    const float* from_all = all();
    float* weights = reinterpret_cast<float*>(shared) + 4;  // [r * splits + p]: what split p counts in row r
    for (int r = thread_index(); r < here; r += Threads) {
      const float* from = from_all + r * width;
      float high = hidden_score, weight = 0;
      for (int p = 0; p < s.splits; ++p) {
        const float x = from[static_cast<i64>(p) * floats];
        weights[r * s.splits + p] = x;
        high = x > high || x != x ? x : high;
      }
      for (int p = 0; p < s.splits; ++p) {
        float& x = weights[r * s.splits + p];
        x = x == hidden_score ? 0 : exp2_device(x - high);
        weight += from[static_cast<i64>(p) * floats + 1] * x;
      }
      for (int p = 0; p < s.splits; ++p) weights[r * s.splits + p] *= weight == 0 ? 0 : 1 / weight;
    }
    sync_block();
    for (int c = thread_index(); c < here * s.value_depth; c += Threads) {
      const int r = c / s.value_depth, d = c % s.value_depth;
      const float* from = from_all + r * width + 2 + d;
      float sum = 0;
      for (int p = 0; p < s.splits; ++p) sum += from[static_cast<i64>(p) * floats] * weights[r * s.splits + p];
      const attention_row at = row_of(s, block.kv_head, block.row0 + r);
      out.base[block.batch * out.batch + at.head * out.head + at.query * out.row + d] = narrow<T>(sum);
    }
  }
};

}  // namespace kiln::gpu
