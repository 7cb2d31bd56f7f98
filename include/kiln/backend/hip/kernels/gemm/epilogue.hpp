#pragma once
#include "kiln/backend/hip/kernels/atom/atom.hpp"
#include "kiln/backend/hip/kernels/gemm/arguments.hpp"

namespace kiln::gpu {

/// The position of a value in a result: batch entry, row and column.
struct position {
  int b0, b1, row, col;
};

/// The result of a GEMM. With `Pixels`, rows count the pixels of all images of a batch: the first batch index of a
/// position is then the image.
template <class T, bool Pixels> struct result_place : result_argument<T> {
  static constexpr bool apart = Pixels;
  KILN_FN position at(int b0, int b1, int row, int col) const {
    if constexpr (Pixels) return {row / this->pixels, b1, row % this->pixels, col};
    return {b0, b1, row, col};
  }
};

KILN_FN i64 offset_of(const i64 (&step)[4], const position& p) {
  return p.b0 * step[0] + p.b1 * step[1] + p.row * step[2] + p.col * step[3];
}

/// A run of an operand as it lies in memory. Elements of fewer than four bytes stay joined in words until they are
/// used: to take them apart waits for them, and others are to be asked for first.
template <class T, int V> struct held_run {
  T elements[V];
  KILN_FN void set(int i, T x) { elements[i] = x; }
  KILN_FN T at(int i) const { return elements[i]; }
  KILN_FN void read(const T* from) {
    const pack<T, V> all = *reinterpret_cast<const pack<T, V>*>(from);
    KILN_UNROLL
    for (int i = 0; i < V; ++i) elements[i] = all.at[i];
  }
};
template <class T, int V>
requires(sizeof(T) < 4 && sizeof(T) * V >= 4) struct held_run<T, V> {
  static constexpr int each = 4 / sizeof(T), bits = 8 * sizeof(T), count = V / each;
  u32 words[count];
  static KILN_FN auto bits_of(T x) {
    if constexpr (sizeof(T) == 2)
      return __builtin_bit_cast(u16, x);
    else
      return __builtin_bit_cast(unsigned char, x);
  }
  KILN_FN void set(int i, T x) {
    const u32 one = static_cast<u32>(bits_of(x)) << i % each * bits;
    words[i / each] = i % each == 0 ? one : words[i / each] | one;
  }
  KILN_FN T at(int i) const {
    return __builtin_bit_cast(T, static_cast<decltype(bits_of(T{}))>(words[i / each] >> i % each * bits));
  }
  KILN_FN void read(const T* from) {
#if KILN_DEVICE
    const pack<u32, count> all = *reinterpret_cast<const pack<u32, count>*>(from);
    KILN_UNROLL
    for (int i = 0; i < count; ++i) words[i] = all.at[i];
#else
    __builtin_memcpy(words, from, sizeof words);
#endif
  }
};

/// How a run of an epilogue's operand is read: one value for all, neighbors in one load, or one by one.
enum class run_kind { same, contiguous, strided };

/// Reads `V` values of an operand from position `p` on, along the rows or the columns; those past `count` repeat the
/// first.
template <class T, run_kind Kind, bool AlongRows, int V>
KILN_FN void read_run(held_run<T, V>& to, const epilogue_operand& x, const position& p, int count) {
  const T* from = static_cast<const T*>(x.base) + offset_of(x.step, p);
  if constexpr (Kind == run_kind::same) {
    const T one = *from;
    KILN_UNROLL
    for (int i = 0; i < V; ++i) to.set(i, one);
    return;
  }
  if constexpr (Kind == run_kind::contiguous) {
    if (count == V) {
      to.read(from);
      return;
    }
  }
  const i64 step = x.step[AlongRows ? 2 : 3];
  KILN_UNROLL
  for (int i = 0; i < V; ++i) to.set(i, from[i < count ? i * step : 0]);
}

/// Writes `count` of `V` results.
template <bool AlongRows, class Place, class T, int V>
KILN_FN void write_run(const Place& place, const T (&from)[V], const position& p, int count) {
  T* to = place.base + offset_of(place.step, p);
  if (count == V && V > 1) {
    using run = pack<T, V>;
    run r;
    KILN_UNROLL
    for (int i = 0; i < V; ++i) r.at[i] = from[i];
    *reinterpret_cast<run*>(to) = r;
    return;
  }
  const i64 step = place.step[AlongRows ? 2 : 3];
  KILN_UNROLL
  for (int i = 0; i < V; ++i)
    if (i < count) to[i * step] = from[i];
}

/// A warp's staging for one row of atoms: its sums leave the lanes' registers and come back as runs of neighbors.
template <class Atom, class Tile> struct epilogue_layout {
  static constexpr int cols = Tile::cols / Tile::warps_n;
  static constexpr int step = staging_step(cols);
  static constexpr int elements = Atom::m * step;
};

/// Applies `result` to the sums of one run of positions.
template <class S, int V, class Result>
KILN_FN void apply_result(const Result& result, S (&sums)[V], const position& p, int count) {
  typename Result::template operands<V> x;
  result.read(x, p, count);
  result.apply(sums, x, p, count);
}

/// Writes a warp's sums through `result`, which has `place`, `width` (elements that one store moves), `along_rows` (the
/// direction in which they are neighbors), `operands<V>` with `read(operands, position, count)`, and
/// `apply(values, operands, position, count)`: sums in, results out. A lane asks for the operands of several runs at a
/// time, since memory takes long to answer.
template <class Atom, class Tile, class Result, int AtomsM, int AtomsN>
KILN_FN void apply_epilogue(const typename Atom::accumulator (&sums)[AtomsM][AtomsN], typename Atom::sum* staging,
                            const Result& result, int b0, int b1, int row0, int col0, int rows, int cols) {
  using layout = epilogue_layout<Atom, Tile>;
  using S = typename Atom::sum;
  constexpr int V = Result::width;
  constexpr bool along_rows = Result::along_rows;
  constexpr int lines = along_rows ? layout::cols : Atom::m, runs = (along_rows ? Atom::m : layout::cols) / V;
  constexpr int each = (lines * runs + warp_lanes - 1) / warp_lanes, together = each < 4 ? each : 4;
  struct run {
    int r, q, left;
    position at;
    KILN_FN run(const Result& result, int c, int b0, int b1, int row0, int col0, int rows, int cols) {
      const int line = c / runs, start = c % runs * V;
      r = along_rows ? start : line, q = along_rows ? line : start;
      const int row = row0 + r, col = col0 + q;
      const bool inside = c < lines * runs && row < rows && col < cols;
      left = inside ? along_rows ? rows - row : cols - col : 0;
      at = result.place.at(b0, b1, row, col);
    }
    KILN_FN int count() const { return left < V ? left : V; }
  };
  const int lane = lane_index();
  KILN_UNROLL
  for (int m = 0; m < AtomsM; ++m) {
    sync_warp();
    KILN_UNROLL
    for (int n = 0; n < AtomsN; ++n) KILN_UNROLL
    for (int i = 0; i < Atom::c_count; ++i) {
      const place p = Atom::c_at(lane, i);
      staging[p.row * layout::step + n * Atom::n + p.depth] = sums[m][n].at[i];
    }
    sync_warp();
    KILN_NO_UNROLL
    for (int c = lane; c < lines * runs; c += together * warp_lanes) {
      const auto run_of = [&](int j) {
        return run(result, c + j * warp_lanes, b0, b1, row0 + m * Atom::m, col0, rows, cols);
      };
      typename Result::template operands<V> x[together];
      KILN_UNROLL
      for (int j = 0; j < together; ++j)
        if (const run to = run_of(j); to.left > 0) result.read(x[j], to.at, to.count());
      KILN_UNROLL
      for (int j = 0; j < together; ++j) {
        const run to = run_of(j);
        if (to.left <= 0) continue;
        S values[V];
        KILN_UNROLL
        for (int i = 0; i < V; ++i)
          values[i] = staging[(along_rows ? to.r + i : to.r) * layout::step + (along_rows ? to.q : to.q + i)];
        result.apply(values, x[j], to.at, to.count());
      }
    }
  }
}

/// Prefetches the operands that have an element for each of a block's results, which its last part will read:
/// `expected` neighbors lie in a line of the cache; 0 where there is no such operand.
template <int Rows, int Cols, int Threads, class Result>
KILN_FN void expect_operands(const Result& result, int b0, int b1, int row0, int col0, int rows, int cols) {
  if constexpr (Result::expected != 0) {
    constexpr int line = Result::expected;
    constexpr int lines = (Cols + line - 1) / line;
    KILN_UNROLL
    for (int first = 0; first < Rows * lines; first += Threads) {
      const int i = first + thread_index(), row = row0 + i / lines, col = col0 + i % lines * line;
      if (i < Rows * lines && row < rows && col < cols) result.expect(result.place.at(b0, b1, row, col));
    }
  }
}

/// Leaves a block's sums for the one that comes last at its tile; true in that one, whose sums are then those of all.
template <class Atom, int AtomsM, int AtomsN, int Threads, class Sizes>
KILN_FN bool join_splits(typename Atom::accumulator (&sums)[AtomsM][AtomsN], const Sizes& s, int split, int* flag) {
  using S = typename Atom::sum;
  constexpr int each = AtomsM * AtomsN * Atom::c_count;
  const int tile = block_x();
  S* mine = static_cast<S*>(s.partial) + static_cast<i64>(tile) * s.splits * Threads * each + thread_index();
  S* own = mine + static_cast<i64>(split) * Threads * each;
  KILN_UNROLL
  for (int m = 0; m < AtomsM; ++m) KILN_UNROLL
  for (int n = 0; n < AtomsN; ++n) KILN_UNROLL
  for (int i = 0; i < Atom::c_count; ++i) own[((m * AtomsN + n) * Atom::c_count + i) * Threads] = sums[m][n].at[i];
  fence_device();
  sync_block();
  if (thread_index() == 0) *flag = atomic_add(s.arrivals + tile, 1) == s.splits - 1;
  sync_block();
  if (!*flag) return false;
  fence_device();
  if (thread_index() == 0) s.arrivals[tile] = 0;
  KILN_UNROLL
  for (int m = 0; m < AtomsM; ++m) KILN_UNROLL
  for (int n = 0; n < AtomsN; ++n) KILN_UNROLL
  for (int i = 0; i < Atom::c_count; ++i) sums[m][n].at[i] = 0;
  for (int k = 0; k < s.splits; ++k) {
    const S* other = mine + static_cast<i64>(k) * Threads * each;
    KILN_UNROLL
    for (int m = 0; m < AtomsM; ++m) KILN_UNROLL
    for (int n = 0; n < AtomsN; ++n) KILN_UNROLL
    for (int i = 0; i < Atom::c_count; ++i) sums[m][n].at[i] += other[((m * AtomsN + n) * Atom::c_count + i) * Threads];
  }
  sync_block();
  return true;
}

}  // namespace kiln::gpu
