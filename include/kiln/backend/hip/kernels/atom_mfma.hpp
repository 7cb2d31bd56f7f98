#pragma once
#include "kiln/backend/hip/kernels/atom.hpp"

namespace kiln::device {

/// AMD's v_mfma_f32_16x16x16 over f16 or bf16 with sums in float, worked by 64 lanes (CDNA 2 instruction set, "Matrix
/// arithmetic instructions"); gfx90a and later gfx9.
template <class T>
struct atom_mfma : loads_elements<atom_mfma<T>, 4> {
  using element = T;
  using sum = float;
  static constexpr int m = 16, n = 16, k = 16, a_count = 4, b_count = 4, c_count = 4;
  static KILN_FN place a_at(int lane, int i) { return {lane % 16, lane / 16 * 4 + i}; }
  static KILN_FN place b_at(int lane, int i) { return {lane % 16, lane / 16 * 4 + i}; }
  static KILN_FN place c_at(int lane, int i) { return {lane / 16 * 4 + i, lane % 16}; }
  using factor_a = fragment<T, 4>;
  using factor_b = fragment<T, 4>;
  using accumulator = fragment<float, 4>;

  static KILN_FN void multiply(accumulator& c, const factor_a& a, const factor_b& b) {
#if KILN_AMD
    typedef float sums __attribute__((ext_vector_type(4)));
    sums s{c.at[0], c.at[1], c.at[2], c.at[3]};
    if constexpr (elementary::same<T, f16>) {
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

/// AMD's v_mfma_f32_16x16x4f32: floats on the matrix unit of gfx9, without rounding the factors.
template <>
struct atom_mfma<float> : loads_elements<atom_mfma<float>, 1> {
  using element = float;
  using sum = float;
  static constexpr int m = 16, n = 16, k = 4, a_count = 1, b_count = 1, c_count = 4;
  static KILN_FN place a_at(int lane, int) { return {lane % 16, lane / 16}; }
  static KILN_FN place b_at(int lane, int) { return {lane % 16, lane / 16}; }
  static KILN_FN place c_at(int lane, int i) { return {lane / 16 * 4 + i, lane % 16}; }
  using factor_a = fragment<float, 1>;
  using factor_b = fragment<float, 1>;
  using accumulator = fragment<float, 4>;

  static KILN_FN void multiply(accumulator& c, const factor_a& a, const factor_b& b) {
#if KILN_AMD
    typedef float sums __attribute__((ext_vector_type(4)));
    sums s{c.at[0], c.at[1], c.at[2], c.at[3]};
    s = __builtin_amdgcn_mfma_f32_16x16x4f32(a.at[0], b.at[0], s, 0, 0, 0);
    for (int i = 0; i < 4; ++i) c.at[i] = s[i];
#else
    emulate_atom<atom_mfma>(c, a, b);
#endif
  }
};

}  // namespace kiln::device
