#pragma once
#include "kiln/backend/hip/kernels/atom.hpp"

namespace kiln::device {

/// Multiply and add on the vector units, for machines and dtypes without a matrix instruction: each lane sums one
/// element over 4 depths, of 8 by 4 in a warp of 32 lanes and 16 by 4 in one of 64.
template <class T>
struct atom_fma : loads_elements<atom_fma<T>, 4> {
  using element = T;
  using sum = sum_t<T>;
  static constexpr int m = warp_lanes / 4, n = 4, k = 4, a_count = 4, b_count = 4, c_count = 1;
  static KILN_FN place a_at(int lane, int i) { return {lane / 4, i}; }
  static KILN_FN place b_at(int lane, int i) { return {lane % 4, i}; }
  static KILN_FN place c_at(int lane, int) { return {lane / 4, lane % 4}; }
  using factor_a = fragment<T, 4>;
  using factor_b = fragment<T, 4>;
  using accumulator = fragment<sum, 1>;

  static KILN_FN void multiply(accumulator& c, const factor_a& a, const factor_b& b) {
    KILN_UNROLL
    for (int i = 0; i < 4; ++i) {
      if constexpr (elementary::same<sum, float>)
        c.at[0] = KILN_LIBM(fmaf)(widen(a.at[i]), widen(b.at[i]), c.at[0]);
      else
        c.at[0] += widen(a.at[i]) * widen(b.at[i]);
    }
  }
};

}  // namespace kiln::device
