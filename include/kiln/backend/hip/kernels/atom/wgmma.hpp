#pragma once
#include "kiln/backend/hip/kernels/atom/atom_mma.hpp"
#include "kiln/backend/hip/kernels/gemm/operand.hpp"

namespace kiln::gpu {

/// A tile of 2-byte elements as wgmma reads it: lines of 64 elements, the 16-byte pieces of a line exchanged by its
/// number modulo 8 (PTX ISA, "Asynchronous warpgroup level matrix shared memory layout", 128-byte swizzling). Lines run
/// along the depth, or along 64 rows, one block of lines for each 64 of them.
template <class T, bool DepthContiguous, int Rows, int Depth> struct swizzled_layout {
  static_assert(Depth == 64 && Rows % 64 == 0 && sizeof(T) == 2);
  static constexpr int step = 64, elements = Rows * Depth;
  static KILN_FN int offset(int across, int along) {
    return along / 64 * Depth * 64 + across * 64 + ((along % 64 / 8) ^ (across % 8)) * 8;
  }
};

#if KILN_NVIDIA
/// A tile's description: where it begins, and the bytes between its blocks of lines and between groups of eight lines.
template <bool DepthContiguous> KILN_FN u64 describe_tile(const void* at) {
  constexpr u64 blocks = DepthContiguous ? 1 : 64 * 128 / 16, groups = 8 * 128 / 16, swizzled = 1;
  return static_cast<u64>((static_cast<u32>(__cvta_generic_to_shared(at)) & 0x3ffff) >> 4) | blocks << 16 |
         groups << 32 | swizzled << 62;
}
KILN_FN void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
KILN_FN void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Pending> KILN_FN void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
/// Registers that wgmma reads or sums in: the compiler keeps what computes them before, what uses them after.
KILN_FN void hold(u32 (&at)[4]) { asm volatile("" : "+r"(at[0]), "+r"(at[1]), "+r"(at[2]), "+r"(at[3])::"memory"); }
KILN_FN void hold(float (&at)[8]) {
  asm volatile(""
               : "+f"(at[0]), "+f"(at[1]), "+f"(at[2]), "+f"(at[3]), "+f"(at[4]), "+f"(at[5]), "+f"(at[6]),
                 "+f"(at[7])::"memory");
}
template <class Registers, int Count> KILN_FN void hold_all(Registers (&of)[Count]) {
  KILN_UNROLL
  for (int i = 0; i < Count; ++i) hold(of[i].at);
}
/// Makes what this thread wrote to shared memory visible to wgmma.
KILN_FN void fence_for_wgmma() { fence_shared(); }

#define KILN_EIGHT(how, c, i) \
  how(c[i]), how(c[i + 1]), how(c[i + 2]), how(c[i + 3]), how(c[i + 4]), how(c[i + 5]), how(c[i + 6]), how(c[i + 7])
#define KILN_THIRTY_TWO(i) \
  KILN_EIGHT("+f", c, i), KILN_EIGHT("+f", c, i + 8), KILN_EIGHT("+f", c, i + 16), KILN_EIGHT("+f", c, i + 24)
#define KILN_NAMES_32                                                      \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KILN_NAMES_64                                                   \
  KILN_NAMES_32                                                         \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, " \
  "%45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define KILN_NAMES_128                                                                           \
  KILN_NAMES_64                                                                                  \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "           \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
// The columns and the type of the factors are part of the instruction's name; `operands` are the numbers of the two
// descriptions and of whether either is transposed.
#define KILN_WGMMA(cols, type, names, operands, ...)                                                       \
  asm volatile(                                                                                            \
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\n"                                                           \
      "wgmma.mma_async.sync.aligned.m64n" cols "k16.f32." type "." type " {" names "}, " operands ";\n}\n" \
      : __VA_ARGS__                                                                                        \
      : "l"(a), "l"(b), "n"(TransposedA), "n"(TransposedB))
#define KILN_OF_TYPE(cols, names, operands, ...)           \
  if constexpr (elementary::same<T, f16>)                  \
    KILN_WGMMA(cols, "f16", names, operands, __VA_ARGS__); \
  else                                                     \
    KILN_WGMMA(cols, "bf16", names, operands, __VA_ARGS__)
/// Starts c[64, Sums * 2] += a[64, 16] b[16, Sums * 2], worked by four warps: warp w holds rows 16 w to 16 w + 15,
/// adjacent atoms in the layout of atom_mma's sums.
template <class T, int TransposedA, int TransposedB, int Sums>
KILN_FN void multiply_wgmma(float (&c)[Sums], u64 a, u64 b) {
  static_assert(Sums == 32 || Sums == 64 || Sums == 128);
  if constexpr (Sums == 32) {
    KILN_OF_TYPE("64", KILN_NAMES_32, "%32, %33, p, 1, 1, %34, %35", KILN_THIRTY_TWO(0));
  } else if constexpr (Sums == 64) {
    KILN_OF_TYPE("128", KILN_NAMES_64, "%64, %65, p, 1, 1, %66, %67", KILN_THIRTY_TWO(0), KILN_THIRTY_TWO(32));
  } else {
    KILN_OF_TYPE("256", KILN_NAMES_128, "%128, %129, p, 1, 1, %130, %131", KILN_THIRTY_TWO(0), KILN_THIRTY_TWO(32),
                 KILN_THIRTY_TWO(64), KILN_THIRTY_TWO(96));
  }
}
#undef KILN_OF_TYPE
#undef KILN_WGMMA
#undef KILN_NAMES_128
#undef KILN_NAMES_64
#undef KILN_NAMES_32
#undef KILN_THIRTY_TWO
#define KILN_WGMMA(type, adds, c)                                                               \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " adds                                         \
               ", 0;\n"                                                                         \
               "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                      \
               " {"                                                                             \
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "         \
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31" \
               "}, {%32, %33, %34, %35}, %36, p, 1, 1, %37;\n}\n"                               \
               : c(0), c(1), c(2), c(3)                                                         \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TransposedB))
#define KILN_SUMS(i) KILN_EIGHT("+f", c[i].at, 0)
#define KILN_STARTS(i) KILN_EIGHT("=f", c[i].at, 0)
/// Starts c[64, 64] = a[64, 16] b[16, 64], or += with `Adds`, for a in registers as atom_mma has it.
template <class T, bool Adds, int TransposedB>
KILN_FN void multiply_wgmma_64(fragment<float, 8> (&c)[4], const u32 (&a)[4], u64 b) {
  if constexpr (elementary::same<T, f16> && Adds)
    KILN_WGMMA("f16", "1", KILN_SUMS);
  else if constexpr (elementary::same<T, f16>)
    KILN_WGMMA("f16", "0", KILN_STARTS);
  else if constexpr (Adds)
    KILN_WGMMA("bf16", "1", KILN_SUMS);
  else
    KILN_WGMMA("bf16", "0", KILN_STARTS);
}
#undef KILN_SUMS
#undef KILN_STARTS
#undef KILN_WGMMA
#undef KILN_EIGHT
#elif !KILN_DEVICE
/// The same by lanes that the CPU runs, each of which sums its elements at once. Shared memory begins at a multiple of
/// 1024 bytes.
template <bool DepthContiguous> u64 describe_tile(const void* at) {
  static_assert(DepthContiguous);
  return reinterpret_cast<u64>(at);
}
inline void wgmma_fence() {}
inline void wgmma_commit() {}
template <int Pending> void wgmma_wait() {}
template <class T, int TransposedA, int TransposedB, int Sums> void multiply_wgmma(float (&c)[Sums], u64 a, u64 b) {
  static_assert(TransposedA == 0 && TransposedB == 0);
  const auto element = [](u64 tile, int line, int depth) {
    const u64 at = tile + static_cast<u64>(line * 128 + depth * static_cast<int>(sizeof(T)));
    return widen(*reinterpret_cast<const T*>(at ^ (at >> 7 & 7) << 4));
  };
  for (int i = 0; i < Sums; ++i) {
    const place p = atom_mma<T>::c_at(lane_index(), i % 8);
    const int row = thread_index() / warp_lanes % 4 * 16 + p.row, col = i / 8 * 16 + p.depth;
    for (int k = 0; k < 16; ++k) c[i] += element(a, row, k) * element(b, col, k);
  }
}
#endif

}  // namespace kiln::gpu
