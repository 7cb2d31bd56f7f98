#pragma once
#include "kiln/backend/hip/kernels/platform/storage_types.hpp"

// Tile kernels' instructions on AMD's platform. Included by platform.hpp.

// Other compilers don't have these instructions.
#if KILN_AMD
namespace kiln::gpu {

KILN_FN void let_next_begin() {}
KILN_FN void await_last() {}
KILN_FN int thread_index() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
KILN_FN int lane_index() { return thread_index() % warp_lanes; }
KILN_FN int block_x() { return static_cast<int>(__builtin_amdgcn_workgroup_id_x()); }
KILN_FN int block_y() { return static_cast<int>(__builtin_amdgcn_workgroup_id_y()); }
KILN_FN void sync_block() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
KILN_FN void sync_warp() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
KILN_FN void fence_device() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
KILN_FN int atomic_add(int* at, int by) { return __atomic_fetch_add(at, by, __ATOMIC_RELAXED); }
KILN_FN float bits_as_float(u32 x) { return __builtin_bit_cast(float, x); }
KILN_FN float shuffle_xor(float x, int mask) {
  const int from = (lane_index() ^ mask) << 2;
  return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(from, __builtin_bit_cast(int, x)));
}
KILN_FN float float_of_half(u16 bits) { return static_cast<float>(__builtin_bit_cast(_Float16, bits)); }
KILN_FN u16 half_of_float(float x) { return __builtin_bit_cast(u16, static_cast<_Float16>(x)); }
KILN_FN u16 bfloat_of_float(float x) {
  const u32 bits = __builtin_bit_cast(u32, x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<u16>((bits >> 16) | 0x40u);
  return static_cast<u16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
KILN_FN float greater_or_nan(float a, float b) { return a > b || a != a ? a : b; }
KILN_FN float exp2_device(float x) { return __builtin_exp2f(x); }
KILN_FN float log2_device(float x) { return __builtin_log2f(x); }

/// Copies `Bytes` to shared memory through registers; those past the first `valid` become zero.
template <int Bytes> KILN_FN void copy_async(void* to, const void* from, int valid) {
  using word = pack<u32, Bytes / 4>;
  word w{};
  if (valid == Bytes) {
    w = *static_cast<const word*>(from);
  } else {
    for (int i = 0; i < Bytes / 2; ++i)
      if (i * 2 < valid) w.at[i / 2] |= static_cast<u32>(static_cast<const u16*>(from)[i]) << (i % 2 * 16);
  }
  *static_cast<word*>(to) = w;
}
template <int Bytes> KILN_FN void copy_async(void* to, const void* from) {
  using word = pack<u32, Bytes / 4>;
  *static_cast<word*>(to) = *static_cast<const word*>(from);
}
KILN_FN void prefetch(const void*) {}
KILN_FN void copy_commit() {}
template <int Pending> KILN_FN void copy_wait() {}

}  // namespace kiln::gpu
#endif
