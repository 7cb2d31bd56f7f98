#pragma once
#include "kiln/backend/hip/kernels/atom/atom.hpp"

namespace kiln::gpu {

/// AMD's v_wmma_f32_16x16x16 over f16 or bf16 with sums in float, worked by 32 lanes of which the upper 16 hold the
/// same factors as the lower (RDNA 3 instruction set, "Wave matrix multiply accumulate"); gfx11.
template <class T> struct atom_wmma : fragment_atom<atom_wmma<T>, T, float, 16, 16, 16, 16, 8, 8> {
  static KILN_FN place a_at(int lane, int i) { return {lane % 16, i}; }
  static KILN_FN place b_at(int lane, int i) { return {lane % 16, i}; }
  static KILN_FN place c_at(int lane, int i) { return {i * 2 + lane / 16, lane % 16}; }

  static KILN_FN void multiply(fragment<float, 8>& c, const fragment<T, 16>& a, const fragment<T, 16>& b) {
#if KILN_AMD
    typedef float sums __attribute__((ext_vector_type(8)));
    sums s;
    for (int i = 0; i < 8; ++i) s[i] = c.at[i];
    if constexpr (elementary::same<T, f16>) {
      typedef _Float16 half16 __attribute__((ext_vector_type(16)));
      s = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(__builtin_bit_cast(half16, a), __builtin_bit_cast(half16, b), s);
    } else {
      typedef short short16 __attribute__((ext_vector_type(16)));
      s = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(__builtin_bit_cast(short16, a), __builtin_bit_cast(short16, b),
                                                      s);
    }
    for (int i = 0; i < 8; ++i) c.at[i] = s[i];
#else
    emulate_atom<atom_wmma>(c, a, b);
#endif
  }
};

}  // namespace kiln::gpu
