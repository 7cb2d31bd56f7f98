#pragma once
#include "kiln/backend/hip/kernels/finish.hpp"
#include "kiln/backend/hip/kernels/operand.hpp"

namespace kiln::device {

/// Attention in tiles with a running softmax (Milakov and Gimelshein 2018; Dao et al. 2022): out[b, h, i] = sum over j
/// of softmax_j(scale * q[b, h, i] . k[b, g, j] + mask[b, h, i, j]) v[b, g, j] with g = h / group. Steps count elements
/// along batch, head and row; the last dim is contiguous. The heads of a group are rows of one matrix, so that a key is
/// read once for all of them (Ainslie et al. 2023).
struct attention_sizes {
  int heads, group, queries, keys, depth, value_depth;
  int tiles;   ///< of rows, for one group
  int splits;  ///< blocks that share a tile, each a range of the keys
  float scale;
  float* partial;  ///< splits > 1: per tile and split, rows * (value depth + 2) floats
  int* arrivals;   ///< splits > 1: one counter a tile, zero before and after
};

template <class T>
struct attention_operand {
  T* base;
  i64 batch, head, row;
};

enum class mask_kind { none, keeps, adds };

/// How a block works: rows of a warp in atoms, warps, keys of a step; depths rounded up to whole atoms. Of `Few` keys
/// the rounding of weights shows: they take part with what it drops.
template <int AtomsM, int Warps, int Keys, int Depth, int ValueDepth, int Vector, bool Few = false>
struct attention_tile {
  static constexpr bool few = Few;
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
  if (s.group == 1) return {kv_head, row};  // a division is dear
  return {kv_head * s.group + row / s.queries, row % s.queries};
}

/// Copies rows of queries, keys or values to shared memory, `Depth` elements of which `depth` exist.
template <int Depth, int Vector, int Threads, int Rows, class T, class Address>
KILN_FN void copy_rows(T* tile, int rows, int depth, const T* any, Address address) {
  constexpr int line = Depth / Vector, step = Depth + tile_pad<T>;
  constexpr int chunks = Rows * line, each = (chunks + Threads - 1) / Threads;
  copy_pieces<Vector, each, T>([&](int i) {
    const int c = thread_index() + i * Threads;
    const int r = c / line, d = c % line * Vector;
    const int n = r < rows ? clamp_count(depth - d, Vector) : 0;
    const bool exists = chunks % Threads == 0 || c < chunks;
    return piece<T>{exists ? tile + r * step + d : nullptr, n > 0 ? address(r) + d : any, n};
  });
}

/// A score after the mask, in the base of exp2: -inf where a key is not seen.
template <class T, mask_kind Mask>
KILN_FN float masked_score(float score, const attention_sizes& s, const tail_operand& mask, i64 at) {
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

}  // namespace kiln::device
