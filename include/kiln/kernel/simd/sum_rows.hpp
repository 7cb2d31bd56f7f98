#pragma once
#include "kiln/kernel/simd/transpose_square.hpp"

namespace kiln::kernels {

/// Lane i is the sum of all lanes of `row[i]`. As `transpose_square`, with exchanged blocks added at once.
template <int Lanes, int Step = 1, class V> KILN_FN V sum_rows(V* row) {
  if constexpr (Step == Lanes) {
    return row[0];
  } else {
#pragma GCC unroll 64
    for (int r = 0; r < Lanes; r += 2 * Step) {
      exchange_lanes<Step>(row[r], row[r + Step], std::make_integer_sequence<int, Lanes>{});
      row[r] += row[r + Step];
    }
    return sum_rows<Lanes, Step * 2>(row);
  }
}

}  // namespace kiln::kernels
