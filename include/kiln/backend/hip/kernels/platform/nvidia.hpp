#pragma once
#include "kiln/backend/hip/kernels/platform/storage_types.hpp"

// Tile kernels' instructions on NVIDIA's platform (PTX ISA), from sm_80 on. Included by platform.hpp.

// Other compilers don't have these instructions.
#if KILN_NVIDIA
namespace kiln::gpu {

/// Where kernels are chained (from sm_90 on), lets the next one's blocks start as soon as all of this one's run.
KILN_FN void let_next_begin() {
#if KILN_CHAINED
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Waits for the results of the kernel before, beside whose last blocks this one started. Before it a kernel reads
/// constants only.
KILN_FN void await_last() {
#if KILN_CHAINED
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
KILN_FN int thread_index() { return static_cast<int>(threadIdx.x); }
KILN_FN int lane_index() { return static_cast<int>(threadIdx.x & 31u); }
KILN_FN int block_x() { return static_cast<int>(blockIdx.x); }
KILN_FN int block_y() { return static_cast<int>(blockIdx.y); }
/// Blocks along the first dim of the grid.
KILN_FN int blocks_x() { return static_cast<int>(gridDim.x); }
KILN_FN void sync_block() { __syncthreads(); }
KILN_FN void sync_warp() { __syncwarp(); }
KILN_FN void fence_device() { __threadfence(); }
KILN_FN int atomic_add(int* at, int by) { return atomicAdd(at, by); }
KILN_FN float shuffle_xor(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
/// What the first lane of the warp passed.
KILN_FN int of_first_lane(int x) { return __shfl_sync(0xffffffffu, x, 0); }

KILN_FN float bits_as_float(u32 x) { return __uint_as_float(x); }
KILN_FN float float_of_half(u16 bits) {
  float to;
  asm("cvt.f32.f16 %0, %1;" : "=f"(to) : "h"(bits));
  return to;
}
KILN_FN u16 half_of_float(float x) {
  u16 to;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to) : "f"(x));
  return to;
}
KILN_FN u16 bfloat_of_float(float x) {
  u16 to;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to) : "f"(x));
  return to;
}
/// Two floats as two elements in one register, the first one low.
template <class T> KILN_FN u32 two_narrow(float low, float high) {
  u32 to;
  if constexpr (elementary::same<T, f16>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low));
  return to;
}
/// The two low bytes, floats of eight bits of type F, as f16 in one register (from sm_89 on).
template <class F> KILN_FN u32 two_halves(u32 pair) {
  u32 to;
  if constexpr (is_e5m2<F>)
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(to) : "h"(static_cast<u16>(pair)));
  else
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(to) : "h"(static_cast<u16>(pair)));
  return to;
}
/// The nearest float of eight bits of type F to one that is not beyond the greatest (from sm_89 on).
template <class F> KILN_FN unsigned char short_of_float(float x) {
  u16 to;
  if constexpr (is_e5m2<F>)
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(to) : "f"(0.0f), "f"(x));
  else
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(to) : "f"(0.0f), "f"(x));
  return static_cast<unsigned char>(to);
}
/// The greater of two numbers; NaN where one is.
KILN_FN float greater_or_nan(float a, float b) {
  float to;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(to) : "f"(a), "f"(b));
  return to;
}
/// Whether the condition holds in any lane of a warp.
KILN_FN bool any_lane(bool holds) { return __any_sync(0xffffffffu, holds); }
/// 2^x to 2 ulp, 0 at minus infinity.
KILN_FN float exp2_device(float x) {
  float to;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(to) : "f"(x));
  return to;
}
/// log2 x to 2^-22, absolutely in (0.5, 2) and else relatively.
KILN_FN float log2_device(float x) {
  float to;
  asm("lg2.approx.f32 %0, %1;" : "=f"(to) : "f"(x));
  return to;
}

/// Four 8 by 8 matrices of 2-byte elements from shared memory; lane i names row i % 8 of matrix i / 8.
template <bool Transposed> KILN_FN void load_matrices(u32 (&to)[4], const void* row) {
  const u32 at = static_cast<u32>(__cvta_generic_to_shared(row));
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}
/// c[16, 8] += a[16, 16] b[16, 8] in a warp's registers.
template <class T> KILN_FN void multiply_mma(float* c, const u32* a, const u32* b) {
  if constexpr (elementary::same<T, f16>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

KILN_FN u32 shared_address(const void* at) { return static_cast<u32>(__cvta_generic_to_shared(at)); }

/// Waits for all threads of a cluster's blocks; after it all see what they wrote to shared memory.
KILN_FN void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// The two halves of that: what a thread writes between them, others need not see yet.
KILN_FN void arrive_in_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
KILN_FN void await_cluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
/// An address of this block's shared memory in that of block `rank` of the cluster.
KILN_FN u32 shared_of_block(const void* at, int rank) {
  u32 to;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(at)), "r"(rank));
  return to;
}
/// Reads floats `Step` apart there; of neighbors, four begin at a multiple of 16 bytes.
template <int Step, int Count> KILN_FN void read_block(float (&to)[Count], u32 at) {
  if constexpr (Step == 1 && Count % 4 == 0) {
    KILN_UNROLL
    for (int i = 0; i < Count; i += 4)
      asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(to[i]), "=f"(to[i + 1]), "=f"(to[i + 2]), "=f"(to[i + 3])
                   : "r"(at + i * 4)
                   : "memory");
  } else {
    KILN_UNROLL
    for (int i = 0; i < Count; ++i)
      asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(to[i]) : "r"(at + i * Step * 4) : "memory");
  }
}

/// Writes 16 bytes of this block's shared memory there.
KILN_FN void write_block(u32 at, const void* from) {
  const uint4 all = *static_cast<const uint4*>(from);
  asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(all.x), "r"(all.y), "r"(all.z),
               "r"(all.w)
               : "memory");
}

/// Barriers in shared memory (mbarrier): each phase ends when `count` have arrived; waits name a phase by its number.
KILN_FN void start_barrier(u64* at, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(at)), "r"(count) : "memory");
}
KILN_FN void arrive_at(u64* at) {
  asm volatile("{\n.reg .b64 s;\nmbarrier.arrive.shared::cta.b64 s, [%0];\n}" ::"r"(shared_address(at)) : "memory");
}
/// Arrives at a barrier whose phase ends when `bytes` more have been copied, too.
KILN_FN void arrive_and_expect(u64* at, int bytes) {
  asm volatile("{\n.reg .b64 s;\nmbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1;\n}" ::"r"(shared_address(at)),
               "r"(bytes)
               : "memory");
}
/// Makes barriers known to the copy unit.
KILN_FN void fence_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
/// Waits for the `Threads` threads that call it with this number, from 1 to 15.
template <int Threads> KILN_FN void sync_some(int number) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(Threads) : "memory");
}
/// Makes what this thread wrote to shared memory visible to the copy unit and to wgmma.
KILN_FN void fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// Two groups of `Threads` threads each take turns at something: `turn` is the one of those numbered 0 and 1 that waits
/// until the other has passed it on.
template <int Threads> KILN_FN void await_turn(int turn) {
  asm volatile("bar.sync %0, %1;" ::"r"(2 + turn), "n"(2 * Threads) : "memory");
}
template <int Threads> KILN_FN void pass_turn(int turn) {
  asm volatile("bar.arrive %0, %1;" ::"r"(2 + turn), "n"(2 * Threads) : "memory");
}
/// Starts the copy of a box of a matrix to shared memory by the copy unit (PTX ISA, "cp.async.bulk.tensor"); elements
/// outside of the matrix are 0.
KILN_FN void tma_load(void* to, const tensor_map& map, int along, int across, u64* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(shared_address(to)),
      "l"(&map), "r"(along), "r"(across), "r"(shared_address(barrier))
      : "memory");
}
/// The same of rows of one head.
KILN_FN void copy_rows_of_head(void* to, const tensor_map& map, int along, int row, int head, int batch, u64* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(shared_address(to)),
      "l"(&map), "r"(along), "r"(row), "r"(head), "r"(batch), "r"(shared_address(barrier))
      : "memory");
}
/// The same of channels of pixels that one tap of consecutive windows meets. The first window begins at (`row`, `col`)
/// of an image, and `down`, `right` lead from its corner to the tap.
KILN_FN void copy_windows(void* to, const tensor_map& map, int channel, int col, int row, int image, int right,
                          int down, u64* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
      "%5}], "
      "[%6], {%7, %8};" ::"r"(shared_address(to)),
      "l"(&map), "r"(channel), "r"(col), "r"(row), "r"(image), "r"(shared_address(barrier)),
      "h"(static_cast<u16>(right)), "h"(static_cast<u16>(down))
      : "memory");
}
/// Starts the copy of a box of shared memory to a matrix; what lies outside of the matrix is not written.
KILN_FN void store_box(const tensor_map& map, const void* from, int along, int across) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
               "r"(along), "r"(across), "r"(shared_address(from))
               : "memory");
}
/// The same of consecutive places of lines, the first one at (`line`, `place`), whose lines follow one another: the box
/// goes on with the next line where one ends.
KILN_FN void copy_places(void* to, const tensor_map& map, int along, int place, int line, u64* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
      "[%5], {%6};" ::"r"(shared_address(to)),
      "l"(&map), "r"(along), "r"(place), "r"(line), "r"(shared_address(barrier)), "h"(static_cast<u16>(0))
      : "memory");
}
/// Starts the copy of a box of shared memory to such places.
KILN_FN void store_places(const tensor_map& map, const void* from, int along, int place, int line) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map),
      "r"(along), "r"(place), "r"(line), "r"(shared_address(from))
      : "memory");
}
/// Closes the group of this thread's stores since the last one.
KILN_FN void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// Waits until of this thread's groups all but the last `Pending` have read shared memory.
template <int Pending> KILN_FN void await_stores() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}
KILN_FN void await_barrier(u64* at, int phase) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(
          shared_address(at)),
      "r"(phase & 1)
      : "memory");
}

/// Leaves this many registers to each thread of a group of four warps, all of which call it; others may then take them.
template <int Count> KILN_FN void leave_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}
template <int Count> KILN_FN void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count)); }

/// Starts a copy of `Bytes` (4, 8 or 16) to shared memory; those past the first `valid` become zero.
template <int Bytes> KILN_FN void copy_async(void* to, const void* from, int valid) {
  const u32 at = shared_address(to);
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(valid) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(Bytes), "r"(valid)
                 : "memory");
}
/// The same of bytes that all exist.
template <int Bytes> KILN_FN void copy_async(void* to, const void* from) {
  const u32 at = shared_address(to);
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(Bytes) : "memory");
}
/// Reads 16 bytes that no kernel writes and nobody reads again soon.
KILN_FN void read_once(u32 (&to)[4], const void* from) {
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "l"(from));
}
/// a * b and a * b + c of pairs of f16 or bf16, each rounded once.
template <class T> KILN_FN u32 multiply_pairs(u32 a, u32 b) {
  u32 to;
  if constexpr (elementary::same<T, f16>)
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(to) : "r"(a), "r"(b));
  else  // mul.rn.bf16x2 needs sm_90; to add -0 changes no product, and no zero
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(to) : "r"(a), "r"(b), "r"(0x80008000u));
  return to;
}
template <class T> KILN_FN u32 fma_pairs(u32 a, u32 b, u32 c) {
  u32 to;
  if constexpr (elementary::same<T, f16>)
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(to) : "r"(a), "r"(b), "r"(c));
  else
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(to) : "r"(a), "r"(b), "r"(c));
  return to;
}
/// Four of the bytes of two words: digit i of `which` names byte i, 0 to 3 of the first word, 4 to 7 of the second.
KILN_FN u32 pick_bytes(u32 low, u32 high, int which) { return __byte_perm(low, high, static_cast<u32>(which)); }
/// Prefetches a line of 128 bytes to L2.
KILN_FN void prefetch(const void* line) { asm volatile("prefetch.global.L2 [%0];" ::"l"(line)); }
/// Closes the group of copies started since the last one.
KILN_FN void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most `Pending` groups of this thread's copies are under way.
template <int Pending> KILN_FN void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory"); }

}  // namespace kiln::gpu
#endif
