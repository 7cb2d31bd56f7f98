#pragma once
#include <utility>

#include "kiln/kernel/simd/vector.hpp"

// Static programs instantiate this text, and exported programs contain it: it needs vectors and nothing else.
namespace kiln::kernels {

template <int Step, class V, int... Lane>
KILN_FN void exchange_lanes(V& low, V& high, std::integer_sequence<int, Lane...>) {
  constexpr int n = sizeof...(Lane);
  const V a = low;
  const V b = high;
  low = __builtin_shufflevector(a, b, ((Lane & Step) == 0 ? Lane : n + Lane - Step)...);
  high = __builtin_shufflevector(a, b, ((Lane & Step) == 0 ? Lane + Step : n + Lane)...);
}

/// Transposes the square matrix whose rows are `row[0 .. Lanes)`, by recursive exchange of off-diagonal blocks
/// (J. O. Eklundh, "A fast computer method for matrix transposing", 1972).
template <int Lanes, int Step = 1, class V> KILN_FN void transpose_square(V* row) {
  if constexpr (Step < Lanes) {
#pragma GCC unroll 64
    for (int r = 0; r < Lanes; ++r)
      if ((r & Step) == 0) exchange_lanes<Step>(row[r], row[r + Step], std::make_integer_sequence<int, Lanes>{});
    transpose_square<Lanes, Step * 2>(row);
  }
}

}  // namespace kiln::kernels
