#pragma once
#include "kiln/backend/hip/kernels/atom/atom.hpp"

namespace kiln::gpu {

/// Multiply and add on the vector units, for machines and dtypes without a matrix instruction: each lane sums one
/// element over 4 depths, of 8 by 4 in a warp of 32 lanes and 16 by 4 in one of 64.
template <class T> struct atom_fma : fragment_atom<atom_fma<T>, T, sum_t<T>, warp_lanes / 4, 4, 4, 4, 1, 4> {
  static KILN_FN place a_at(int lane, int i) { return {lane / 4, i}; }
  static KILN_FN place b_at(int lane, int i) { return {lane % 4, i}; }
  static KILN_FN place c_at(int lane, int) { return {lane / 4, lane % 4}; }

  static KILN_FN void multiply(fragment<sum_t<T>, 1>& c, const fragment<T, 4>& a, const fragment<T, 4>& b) {
    KILN_UNROLL
    for (int i = 0; i < 4; ++i) {
      if constexpr (elementary::same<sum_t<T>, float>)
        c.at[0] = KILN_LIBM(fmaf)(widen(a.at[i]), widen(b.at[i]), c.at[0]);
      else
        c.at[0] += widen(a.at[i]) * widen(b.at[i]);
    }
  }
};

}  // namespace kiln::gpu
