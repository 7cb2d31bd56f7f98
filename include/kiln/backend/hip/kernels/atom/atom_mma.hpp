#pragma once
#include "kiln/backend/hip/kernels/atom/atom.hpp"

namespace kiln::gpu {

/// NVIDIA's mma.sync m16n8k16 twice, over adjacent columns, for f16 or bf16 with sums in float (PTX ISA, "Matrix
/// fragments for mma.m16n8k16"); from sm_80 on.
template <class T> struct atom_mma {
  using element = T;
  using sum = float;
  static constexpr int m = 16, n = 16, k = 16, a_count = 8, b_count = 8, c_count = 8;
  static KILN_FN place a_at(int lane, int i) { return {lane / 4 + i / 2 % 2 * 8, lane % 4 * 2 + i % 2 + i / 4 * 8}; }
  static KILN_FN place b_at(int lane, int i) { return {lane / 4 + i / 4 * 8, lane % 4 * 2 + i % 2 + i / 2 % 2 * 8}; }
  static KILN_FN place c_at(int lane, int i) { return {lane / 4 + i / 2 % 2 * 8, lane % 4 * 2 + i % 2 + i / 4 * 8}; }
  struct registers {
    u32 at[4];
  };
  using factor_a = registers;
  using factor_b = registers;
  using accumulator = fragment<float, 8>;

  template <bool DepthContiguous> static KILN_FN void load_a(factor_a& to, const T* tile, int step) {
    const int lane = lane_index();
#if KILN_NVIDIA
    if constexpr (DepthContiguous)
      load_matrices<false>(to.at, tile + lane % 16 * step + lane / 16 * 8);
    else
      load_matrices<true>(to.at, tile + (lane % 8 + lane / 16 * 8) * step + lane / 8 % 2 * 8);
#else
    gather<DepthContiguous>(to, tile, step, [=](int i) { return a_at(lane, i); });
#endif
  }
  template <bool DepthContiguous> static KILN_FN void load_b(factor_b& to, const T* tile, int step) {
    const int lane = lane_index();
#if KILN_NVIDIA
    if constexpr (DepthContiguous)
      load_matrices<false>(to.at, tile + (lane % 8 + lane / 16 * 8) * step + lane / 8 % 2 * 8);
    else
      load_matrices<true>(to.at, tile + lane % 16 * step + lane / 16 * 8);
#else
    gather<DepthContiguous>(to, tile, step, [=](int i) { return b_at(lane, i); });
#endif
  }
  static KILN_FN void multiply(accumulator& c, const factor_a& a, const factor_b& b) {
#if KILN_NVIDIA
    multiply_mma<T>(c.at, a.at, b.at);
    multiply_mma<T>(c.at + 4, a.at, b.at + 2);
#else
    emulate_atom<atom_mma>(c, a, b);
#endif
  }
  /// Sums of one product as the left factor of the next: lanes hold the same elements of both.
  static KILN_FN void as_factor(factor_a& to, const accumulator& c) {
    to.at[0] = two_narrow<T>(c.at[0], c.at[1]);
    to.at[1] = two_narrow<T>(c.at[2], c.at[3]);
    to.at[2] = two_narrow<T>(c.at[4], c.at[5]);
    to.at[3] = two_narrow<T>(c.at[6], c.at[7]);
  }
  /// What those sums lose by it, as a factor.
  static KILN_FN void as_dropped(factor_a& to, const accumulator& c, const factor_a& taken) {
    KILN_UNROLL
    for (int i = 0; i < 4; ++i)
      to.at[i] = two_narrow<T>(c.at[2 * i] - widen(T{static_cast<u16>(taken.at[i])}),
                               c.at[2 * i + 1] - widen(T{static_cast<u16>(taken.at[i] >> 16)}));
  }

 private:
#if !KILN_DEVICE
  template <bool DepthContiguous, class Where> static void gather(registers& to, const T* tile, int step, Where where) {
    for (int i = 0; i < 8; ++i) {
      const place p = where(i);
      const T x = DepthContiguous ? tile[p.row * step + p.depth] : tile[p.depth * step + p.row];
      to.at[i / 2] = i % 2 ? to.at[i / 2] | static_cast<u32>(x.bits) << 16 : x.bits;
    }
  }
#endif
};

/// The same instruction once: its right factor has eight columns.
template <class T> struct atom_mma_narrow {
  using element = T;
  using sum = float;
  static constexpr int m = 16, n = 8, k = 16, a_count = 8, b_count = 4, c_count = 4;
  static KILN_FN place a_at(int lane, int i) { return atom_mma<T>::a_at(lane, i); }
  static KILN_FN place b_at(int lane, int i) { return atom_mma<T>::b_at(lane, i); }
  static KILN_FN place c_at(int lane, int i) { return atom_mma<T>::c_at(lane, i); }
  struct registers {
    u32 at[2];
  };
  using factor_a = typename atom_mma<T>::factor_a;
  using factor_b = registers;
  using accumulator = fragment<float, 4>;
  static KILN_FN void multiply(accumulator& c, const factor_a& a, const factor_b& b) {
#if KILN_NVIDIA
    multiply_mma<T>(c.at, a.at, b.at);
#else
    emulate_atom<atom_mma_narrow>(c, a, b);
#endif
  }
};

}  // namespace kiln::gpu
