#pragma once
#include "kiln/backend/hip/kernels/attention/arguments.hpp"
#include "kiln/backend/hip/kernels/gemm/epilogue.hpp"
#include "kiln/backend/hip/kernels/gemm/operand.hpp"

namespace kiln::gpu {

enum class mask_kind { none, keeps, adds };

/// How a block works: rows of a warp in atoms, warps, keys of a step; depths rounded up to whole atoms. Of `Few` keys
/// the rounding of weights shows: they take part with what it drops. `Parts` warps work the same rows, each with keys
/// of its own.
template <int AtomsM, int Warps, int Keys, int Depth, int ValueDepth, int Vector, bool Few = false, int Parts = 1>
struct attention_tile {
  static constexpr bool few = Few;
  static constexpr int parts = Parts;
  static constexpr int atoms_m = AtomsM, warps = Warps, keys = Keys, depth = Depth, value_depth = ValueDepth,
                       vector = Vector;
};

inline constexpr float hidden_score = __builtin_bit_cast(float, 0xff800000u);
inline constexpr float log2_e = 1.44269504f;

/// One row of a tile: which head and query it is.
struct attention_row {
  int head, query;
};
KILN_FN attention_row row_of(const attention_sizes& s, int kv_head, int row) {
  if (s.group == 1) return {kv_head, row};  // saves a division
  return {kv_head * s.group + row / s.queries, row % s.queries};
}

/// Copies rows of queries, keys or values to shared memory, `Depth` elements of which `depth` exist, by `Threads`
/// threads: a block's or a warp's.
template <int Depth, int Vector, int Threads, int Rows, class T, class Address>
KILN_FN void copy_rows(T* tile, int rows, int depth, const T* any, Address address) {
  constexpr int line = Depth / Vector, step = Depth + tile_pad(sizeof(T));
  constexpr int chunks = Rows * line, each = (chunks + Threads - 1) / Threads;
  const int own = Threads == warp_lanes ? lane_index() : thread_index();
  copy_pieces<Vector, each, T>([&](int i) {
    const int c = own + i * Threads;
    const int r = c / line, d = c % line * Vector;
    const int n = r < rows ? clamp_count(depth - d, Vector) : 0;
    const bool exists = chunks % Threads == 0 || c < chunks;
    return piece<T>{exists ? tile + r * step + d : nullptr, n > 0 ? address(r) + d : any, n};
  });
}

/// A score after the mask, in the base of exp2: -inf where a key is not seen.
template <class T, mask_kind Mask>
KILN_FN float masked_score(float score, const attention_sizes& s, const epilogue_operand& mask, i64 at) {
  if constexpr (Mask == mask_kind::keeps)
    return static_cast<const bool*>(mask.base)[at] ? score * s.scale * log2_e : hidden_score;
  if constexpr (Mask == mask_kind::adds)
    // rounded as the addition of two tensors is: far below zero a mask swallows the score
    return widen(narrow<T>(score * s.scale + widen(static_cast<const T*>(mask.base)[at]))) * log2_e;
  return score * s.scale * log2_e;
}

/// The keys that the rows of a tile may see: the range of this block's split.
struct key_range {
  int begin, end;
};
template <bool Causal>
KILN_FN key_range keys_of_tile(const attention_sizes& s, int row0, int rows, int split, int step) {
  int end = s.keys;
  if constexpr (Causal) {
    // the last query among the rows, which is the last of all where they reach into another head
    const int last = row0 / s.queries == (row0 + rows - 1) / s.queries ? (row0 + rows - 1) % s.queries : s.queries - 1;
    end = last + 1 + s.keys - s.queries;
    end = end < 0 ? 0 : end < s.keys ? end : s.keys;
  }
  const int steps = (end + step - 1) / step;
  const int from = static_cast<int>(static_cast<i64>(steps) * split / s.splits) * step;
  const int to = static_cast<int>(static_cast<i64>(steps) * (split + 1) / s.splits) * step;
  return {from, to < end ? to : end};
}

/// Which part of attention a block works on: `group` counts batch entries times key heads. Only a grid's first dim has
/// more than 65535 blocks: a group's tiles, each as many times as there are splits, follow those of the one before. In
/// causal attention the last tiles have the most keys, so that they come first.
struct attention_place {
  int group, tile, split;
  KILN_FN explicit attention_place(const attention_sizes& s) {
    const int parts = s.tiles * s.splits, part = block_x() % parts;
    group = block_x() / parts, split = part % s.splits, tile = s.tiles - 1 - part / s.splits;
  }
};

/// What a block works on: the rows of a tile of one group of heads. It copies queries, keys and values to shared
/// memory.
template <class T, class Tile, int Rows, int Threads> struct attention_block {
  const attention_operand<const T>&q, &k, &v;
  const attention_sizes& s;
  int group, batch, kv_head, row0, all_rows;
  const T *queries, *keys, *values;                          ///< of the batch entry; of the head
  static constexpr int key_threads = Threads / Tile::parts;  ///< that copy keys together

  KILN_FN attention_block(const attention_operand<const T>& q, const attention_operand<const T>& k,
                          const attention_operand<const T>& v, const attention_sizes& s, const attention_place& at)
      : q(q), k(k), v(v), s(s), group(at.group), row0(at.tile * Rows), all_rows(s.group * s.queries) {
    const int kv_heads = s.heads / s.group;
    batch = group / kv_heads, kv_head = group % kv_heads;
    queries = q.base + batch * q.batch;
    keys = k.base + batch * k.batch + kv_head * k.head;
    values = v.base + batch * v.batch + kv_head * v.head;
  }
  /// Rows of the tile that exist.
  KILN_FN int rows() const { return Rows < all_rows - row0 ? Rows : all_rows - row0; }
  template <bool Causal> KILN_FN key_range seen_keys(int split) const {
    return keys_of_tile<Causal>(s, row0, rows(), split, Tile::keys);
  }
  KILN_FN void copy_queries(T* to) const {
    copy_rows<Tile::depth, Tile::vector, Threads, Rows>(to, all_rows - row0, s.depth, queries, [&](int r) {
      const attention_row at = row_of(s, kv_head, row0 + r);
      return queries + at.head * q.head + at.query * q.row;
    });
  }
  /// Keys and values from key `j0` on, of which those before `end` exist.
  KILN_FN void copy_keys(T* to_keys, T* to_values, int j0, int end) const {
    copy_rows<Tile::depth, Tile::vector, key_threads, Tile::keys>(to_keys, end - j0, s.depth, keys,
                                                                  [&](int r) { return keys + (j0 + r) * k.row; });
    copy_rows<Tile::value_depth, Tile::vector, key_threads, Tile::keys>(
        to_values, end - j0, s.value_depth, values, [&](int r) { return values + (j0 + r) * v.row; });
  }
};

/// Works the keys of `range`, `Part::tile_keys` a step: all threads copy them, and `own`, a warp's or a thread's rows,
/// has both products and the running softmax between. A part whose rows don't exist only copies.
template <mask_kind Mask, bool Causal, class Block, class Part>
KILN_FN void attend_in_steps(const Block& block, Part& own, const epilogue_operand& mask, key_range range,
                             bool exists) {
  block.copy_queries(own.tile_q);
  for (int j0 = range.begin; j0 < range.end; j0 += Part::tile_keys) {
    sync_block();
    block.copy_keys(own.tile_k, own.tile_v, j0, range.end);
    copy_commit();
    copy_wait<0>();
    sync_block();
    if (!exists) continue;
    own.multiply_keys();
    sync_warp();
    own.template weigh<Mask, Causal>(block, mask, j0, range.end);
    sync_warp();
    own.multiply_values();
  }
  copy_commit();
  copy_wait<0>();
}

}  // namespace kiln::gpu
