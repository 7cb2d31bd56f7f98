#pragma once
#include "kiln/backend/hip/kernels/platform/platform.hpp"

namespace kiln::gpu {

/// A matrix instruction as data: acc[m, n] += a[m, k] b[k, n], worked by one warp. A lane holds a_count, b_count and
/// c_count elements of the three; the functions say which. Kernels are written over this and know no instruction.
///
///   using element, sum;                                types of the factors and of what is summed
///   static constexpr int m, n, k, a_count, b_count, c_count;
///   static place a_at(int lane, int i), b_at(...)      element i of that lane: row (or column) and depth
///   static place c_at(int lane, int i)                 row and column
///   using factor_a, factor_b, accumulator;             registers of a lane
///   load_a<DepthContiguous>(to, tile, step), load_b    from shared memory; `step` elements from one row (where the
///                                                      depth is contiguous, else from one depth) to the next
///   multiply(acc, a, b)
struct place {
  int row, depth;
};

/// Element `i` of a fragment held as plain elements.
template <class T, int Count> struct fragment { T at[Count]; };

/// Reads a lane's elements one by one, or in runs where the depth is contiguous and a lane holds runs of it.
template <bool DepthContiguous, int Run, int Count, class T, class Where>
KILN_FN void load_elements(fragment<T, Count>& to, const T* tile, int step, Where where) {
  const int lane = lane_index();
  if constexpr (DepthContiguous && Run > 1) {
    using run = pack<T, Run>;
    KILN_UNROLL
    for (int i = 0; i < Count; i += Run) {
      const place p = where(lane, i);
      const run r = *reinterpret_cast<const run*>(tile + p.row * step + p.depth);
      KILN_UNROLL
      for (int j = 0; j < Run; ++j) to.at[i + j] = r.at[j];
    }
  } else {
    KILN_UNROLL
    for (int i = 0; i < Count; ++i) {
      const place p = where(lane, i);
      to.at[i] = DepthContiguous ? tile[p.row * step + p.depth] : tile[p.depth * step + p.row];
    }
  }
}

/// What atoms have in common whose fragments are plain elements: types, counts, and loads in runs of `Run` along the
/// depth.
template <class Atom, class T, class Sum, int M, int N, int K, int Factors, int Sums, int Run> struct fragment_atom {
  using element = T;
  using sum = Sum;
  static constexpr int m = M, n = N, k = K, a_count = Factors, b_count = Factors, c_count = Sums;
  using factor_a = fragment<T, Factors>;
  using factor_b = fragment<T, Factors>;
  using accumulator = fragment<Sum, Sums>;

  template <bool DepthContiguous> static KILN_FN void load_a(factor_a& to, const T* tile, int step) {
    load_elements<DepthContiguous, Run>(to, tile, step, [](int lane, int i) { return Atom::a_at(lane, i); });
  }
  template <bool DepthContiguous> static KILN_FN void load_b(factor_b& to, const T* tile, int step) {
    load_elements<DepthContiguous, Run>(to, tile, step, [](int lane, int i) { return Atom::b_at(lane, i); });
  }
};

#if !KILN_DEVICE
/// The instruction by its own description, for lanes that the CPU runs.
template <class Atom, class A, class B, class C> void emulate_atom(C& acc, const A& a, const B& b) {
  using element = typename Atom::element;
  struct factors {
    element a[Atom::a_count], b[Atom::b_count];
  };
  static_assert(sizeof(factors) <= exchange_bytes && sizeof a == sizeof(factors::a) && sizeof b == sizeof(factors::b));
  factors mine;
  std::memcpy(mine.a, &a, sizeof a);
  std::memcpy(mine.b, &b, sizeof b);
  std::memcpy(exchange_slot(now.thread), &mine, sizeof mine);
  wait_for_warp();
  const int base = now.thread - lane_index();
  element whole_a[Atom::m][Atom::k], whole_b[Atom::n][Atom::k];
  for (int lane = 0; lane < warp_lanes; ++lane) {
    factors f;
    std::memcpy(&f, exchange_slot(base + lane), sizeof f);
    for (int i = 0; i < Atom::a_count; ++i) {
      const place p = Atom::a_at(lane, i);
      whole_a[p.row][p.depth] = f.a[i];
    }
    for (int i = 0; i < Atom::b_count; ++i) {
      const place p = Atom::b_at(lane, i);
      whole_b[p.row][p.depth] = f.b[i];
    }
  }
  for (int i = 0; i < Atom::c_count; ++i) {
    const place p = Atom::c_at(lane_index(), i);
    for (int k = 0; k < Atom::k; ++k)
      acc.at[i] += static_cast<typename Atom::sum>(widen(whole_a[p.row][k]) * widen(whole_b[p.depth][k]));
  }
  wait_for_warp();
}
#endif

}  // namespace kiln::gpu
