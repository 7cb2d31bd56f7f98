#pragma once
#include "kiln/backend/hip/kernels/attention/attention.hpp"

namespace kiln::gpu {

/// Joins what `parts` parts of the keys left of `rows` rows: part p's rows begin at `from` + p * `step`, each its base,
/// its total and `Depth` sums. `finish(row, base, total)` gives what sums are to be multiplied by, `write(row, d,
/// sums)` takes the sums from `d` on. `weights` is shared memory for parts * rows floats.
template <int Depth, int Threads, class Finish, class Write>
KILN_FN void join_parts(const float* from, i64 step, int parts, int rows, float* weights, Finish finish, Write write) {
  constexpr int width = split_row(Depth), pairs = Depth / 2;
  using pair = pack<float, 2>;
  const int lane = lane_index();
  for (int r = thread_index() / warp_lanes; r < rows; r += Threads / warp_lanes) {
    const float* const own = from + r * width;
    float high = hidden_score, total = 0;
    for (int p = lane; p < parts; p += warp_lanes) high = greater_or_nan(own[p * step], high);
    for (int x = 1; x < warp_lanes; x *= 2) high = greater_or_nan(shuffle_xor(high, x), high);
    for (int p = lane; p < parts; p += warp_lanes) {
      const float base = own[p * step], weight = base == hidden_score ? 0 : exp2_device(base - high);
      weights[r * parts + p] = weight;
      total += own[p * step + 1] * weight;
    }
    for (int x = 1; x < warp_lanes; x *= 2) total += shuffle_xor(total, x);
    const float by = finish(r, high, total);
    for (int p = lane; p < parts; p += warp_lanes) weights[r * parts + p] *= by;
  }
  sync_block();
  for (int c = thread_index(); c < rows * pairs; c += Threads) {
    const int r = c / pairs, d = c % pairs * 2;
    const float *const own = from + r * width + 2 + d, *const weight = weights + r * parts;
    pair sums{};
    KILN_UNROLL
    for (int p = 0; p < parts; ++p) {
      const pair x = *reinterpret_cast<const pair*>(own + p * step);
      sums.at[0] += x.at[0] * weight[p], sums.at[1] += x.at[1] * weight[p];
    }
    write(r, d, sums);
  }
}

/// What blocks leave that share a tile of rows, each a range of the keys: the sums of every row, their base and their
/// total. The block that arrives last makes the results of all.
template <class T, class Tile, int Rows, int Threads> struct split_sums {
  static constexpr int depth = Tile::value_depth, width = split_row(depth), floats = split_floats(Rows, depth);
  const attention_block<T, Tile, Rows, Threads>& block;
  const attention_sizes& s;
  int tile;

  KILN_FN i64 tile_at() const { return static_cast<i64>(block.group) * s.tiles + tile; }
  KILN_FN float* all() const { return s.partial + tile_at() * s.splits * floats; }
  KILN_FN float* of_split(int split) const { return all() + static_cast<i64>(split) * floats; }

  /// Writes a warp's rows, `warp_row` the first of them in the tile, to `own`.
  template <class Softmax, class Sums>
  KILN_FN void leave(const Softmax& softmax, Sums& sums, float* own, int warp_row) const {
    const int lane = lane_index();
    KILN_UNROLL
    for (int r = 0; r < Softmax::count; ++r) {
      const int row = warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4;
      if (row >= block.rows()) continue;
      float* to = own + row * width;
      if (lane % 4 == 0) to[0] = softmax.top[r], to[1] = softmax.total[r];
      KILN_UNROLL
      for (int n = 0; n < depth / 16; ++n) KILN_UNROLL
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
  /// Makes the results of `parts` parts, part p's at `from` + p * `floats`.
  KILN_FN void join(const attention_operand<T>& out, const float* from, int parts, float* weights) const {
    join_parts<depth, Threads>(
        from, floats, parts, block.rows(), weights,
        [](int, float, float total) { return total == 0 ? 0.0f : 1 / total; },
        [&](int r, int d, const pack<float, 2>& sums) {
          const attention_row at = row_of(s, block.kv_head, block.row0 + r);
          T* const to = out.base + block.batch * out.batch + at.head * out.head + at.query * out.row + d;
          if (d < s.value_depth) to[0] = narrow<T>(sums.at[0]);
          if (d + 1 < s.value_depth) to[1] = narrow<T>(sums.at[1]);
        });
  }
  /// Makes one part of `parts`, as `leave` writes it.
  KILN_FN void join(float* to, const float* from, int parts, float* weights) const {
    join_parts<depth, Threads>(
        from, floats, parts, block.rows(), weights,
        [&](int r, float base, float total) {
          if (lane_index() == 0) to[r * width] = base, to[r * width + 1] = total;
          return 1.0f;
        },
        [&](int r, int d, const pack<float, 2>& sums) {
          *reinterpret_cast<pack<float, 2>*>(to + r * width + 2 + d) = sums;
        });
  }
  /// Once this block has left its part: the block that arrives last joins those of all.
  KILN_FN void join_splits(const attention_operand<T>& out, char* shared) const {
    if (is_last(shared)) join(out, all(), s.splits, reinterpret_cast<float*>(shared + split_flag_bytes));
  }
};

}  // namespace kiln::gpu
