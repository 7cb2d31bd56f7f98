#pragma once
#include "kiln/backend/hip/kernels/atom/atom.hpp"

namespace kiln::gpu {

/// Elements of a factor that a lane of `atom_mfma` holds.
template <class T> inline constexpr int mfma_factors = elementary::same<T, float> ? 1 : 4;

/// AMD's v_mfma_f32_16x16x16 over f16 or bf16 with sums in float, worked by 64 lanes (CDNA 2 instruction set, "Matrix
/// arithmetic instructions"), on gfx90a and later gfx9; v_mfma_f32_16x16x4f32 over floats, which rounds no factor.
template <class T>
struct atom_mfma
    : fragment_atom<atom_mfma<T>, T, float, 16, 16, 4 * mfma_factors<T>, mfma_factors<T>, 4, mfma_factors<T>> {
  static constexpr int each = mfma_factors<T>;
  static KILN_FN place a_at(int lane, int i) { return {lane % 16, lane / 16 * each + i}; }
  static KILN_FN place b_at(int lane, int i) { return {lane % 16, lane / 16 * each + i}; }
  static KILN_FN place c_at(int lane, int i) { return {lane / 16 * 4 + i, lane % 16}; }

  static KILN_FN void multiply(fragment<float, 4>& c, const fragment<T, each>& a, const fragment<T, each>& b) {
#if KILN_AMD
    typedef float sums __attribute__((ext_vector_type(4)));
    sums s{c.at[0], c.at[1], c.at[2], c.at[3]};
    if constexpr (elementary::same<T, float>) {
      s = __builtin_amdgcn_mfma_f32_16x16x4f32(a.at[0], b.at[0], s, 0, 0, 0);
    } else if constexpr (elementary::same<T, f16>) {
      typedef _Float16 half4 __attribute__((ext_vector_type(4)));
      s = __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(half4, a), __builtin_bit_cast(half4, b), s, 0, 0, 0);
    } else {
      typedef short short4 __attribute__((ext_vector_type(4)));
      s = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(__builtin_bit_cast(short4, a), __builtin_bit_cast(short4, b), s, 0,
                                                    0, 0);
    }
    for (int i = 0; i < 4; ++i) c.at[i] = s[i];
#else
    emulate_atom<atom_mfma>(c, a, b);
#endif
  }
};

}  // namespace kiln::gpu
