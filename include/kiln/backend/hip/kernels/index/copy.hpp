#pragma once
#include "kiln/backend/hip/kernels/index/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/platform.hpp"

namespace kiln::gpu {

/// One thread's part: elements `first`, `first + step`, …, of which several are under way at a time. `Index` holds
/// every count and offset.
template <int Rank, class Index, class T>
KILN_FN void copy_any(T* to, const T* from, const copy_sizes& s, i64 first, i64 step) {
  constexpr int each = 4;
  const auto offsets = [&](i64 i, Index& a, Index& b) {
    Index rest = static_cast<Index>(i);
    a = b = 0;
    KILN_UNROLL
    for (int d = Rank - 1; d >= 0; --d) {
      const Index extent = static_cast<Index>(s.lens[d]);
      const Index q = d == 0 ? 0 : rest / extent, at = d == 0 ? rest : rest - q * extent;
      rest = q;
      a += at * static_cast<Index>(s.from[d]);
      b += at * static_cast<Index>(s.to[d]);
    }
  };
  i64 i = first;
  for (; i + (each - 1) * step < s.total; i += each * step) {
    T moved[each];
    Index a, b[each];
    KILN_UNROLL
    for (int u = 0; u < each; ++u) {
      offsets(i + u * step, a, b[u]);
      moved[u] = from[a];
    }
    KILN_UNROLL
    for (int u = 0; u < each; ++u) to[b[u]] = moved[u];
  }
  for (; i < s.total; i += step) {
    Index a, b;
    offsets(i, a, b);
    to[b] = from[a];
  }
}

/// One thread's part of a copy whose result is dense: runs `first`, `first + step`, … of `Run` elements, of which the
/// last may be shorter. Positions go on from element to element.
template <int Rank, int Run, class Index, class T>
KILN_FN void copy_runs(T* to, const T* from, const copy_sizes& s, i64 first, i64 step) {
  for (i64 r = first; r * Run < s.total; r += step) {
    const Index start = static_cast<Index>(r * Run), left = static_cast<Index>(s.total) - start;
    Index rest = start, a = 0, at[Rank];
    KILN_UNROLL
    for (int d = Rank - 1; d >= 0; --d) {
      const Index extent = static_cast<Index>(s.lens[d]), q = d == 0 ? 0 : rest / extent;
      at[d] = rest - q * extent;
      rest = q;
      a += at[d] * static_cast<Index>(s.from[d]);
    }
    pack<T, Run> moved;
    KILN_UNROLL
    for (int j = 0; j < Run; ++j) {
      moved.at[j] = from[a];
      if (j + 1 >= left) continue;  // what is left of the run repeats the last element
      a += static_cast<Index>(s.from[Rank - 1]);
      bool carries = true;
      KILN_UNROLL
      for (int d = Rank - 1; d >= 0; --d) {
        if (carries) ++at[d];
        carries = carries && d > 0 && at[d] == static_cast<Index>(s.lens[d]);
        if (!carries) continue;
        at[d] = 0;
        a += static_cast<Index>(s.from[d > 0 ? d - 1 : 0]) -
             static_cast<Index>(s.lens[d]) * static_cast<Index>(s.from[d]);
      }
    }
    if (left >= Run) {
      *reinterpret_cast<pack<T, Run>*>(to + start) = moved;
    } else {
      KILN_UNROLL
      for (int j = 0; j < Run; ++j)
        if (j < left) to[start + j] = moved.at[j];
    }
  }
}

/// A transposition of squares of `Edge` elements through shared memory: the last dim is contiguous in the result, the
/// one before it in the operand, and a thread moves `Run` neighbors at a time, of which both extents and all steps are
/// multiples. One block of 256 threads works square `square`.
template <int Rank, int Edge, int Run, class T>
KILN_FN void copy_turned(T* to, const T* from, const copy_sizes& s, T (&tile)[Edge][Edge + 1], i64 square) {
  using run = pack<T, Run>;
  constexpr int across = Edge / Run, lines = 256 / across;
  const i64 squares = (s.lens[Rank - 1] + Edge - 1) / Edge, down = (s.lens[Rank - 2] + Edge - 1) / Edge;
  i64 rest = square / squares;
  const i64 c0 = (square - rest * squares) * Edge, q = rest / down, r0 = (rest - q * down) * Edge;
  rest = q;
  KILN_UNROLL
  for (int d = Rank - 3; d >= 0; --d) {
    const i64 next = rest / s.lens[d], at = rest - next * s.lens[d];
    rest = next;
    from += at * s.from[d];
    to += at * s.to[d];
  }
  const int x = thread_index() % across * Run, y = thread_index() / across;
  KILN_UNROLL
  for (int i = 0; i < Edge; i += lines) {
    const i64 r = r0 + x, c = c0 + y + i;
    if (r >= s.lens[Rank - 2] || c >= s.lens[Rank - 1]) continue;
    const run v = *reinterpret_cast<const run*>(from + r + c * s.from[Rank - 1]);
    KILN_UNROLL
    for (int j = 0; j < Run; ++j) tile[y + i][x + j] = v.at[j];
  }
  sync_block();
  KILN_UNROLL
  for (int i = 0; i < Edge; i += lines) {
    const i64 r = r0 + y + i, c = c0 + x;
    if (r >= s.lens[Rank - 2] || c >= s.lens[Rank - 1]) continue;
    run v;
    KILN_UNROLL
    for (int j = 0; j < Run; ++j) v.at[j] = tile[x + j][y + i];
    *reinterpret_cast<run*>(to + r * s.to[Rank - 2] + c) = v;
  }
}

}  // namespace kiln::gpu
