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
/// A tile's description: where it begins, and the bytes between its blocks of lines, of `Lines` each, and between
/// groups of eight lines.
template <bool DepthContiguous, int Lines = 64> KILN_FN u64 describe_tile(const void* at) {
  constexpr u64 blocks = DepthContiguous ? 1 : Lines * 128 / 16, groups = 8 * 128 / 16, swizzled = 1;
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
/// The same of sums alone, as many as there are.
template <int Count> KILN_FN void hold_sums(float (&at)[Count]) {
  KILN_UNROLL
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(at[i])::"memory");
}
template <class Registers, int Count> KILN_FN void hold_all(Registers (&of)[Count]) {
  KILN_UNROLL
  for (int i = 0; i < Count; ++i) hold(of[i].at);
}
/// Makes what this thread wrote to shared memory visible to wgmma.
KILN_FN void fence_for_wgmma() { fence_shared(); }

#define KILN_EIGHT(how, c, i) \
  how(c[i]), how(c[i + 1]), how(c[i + 2]), how(c[i + 3]), how(c[i + 4]), how(c[i + 5]), how(c[i + 6]), how(c[i + 7])
#define KILN_THIRTY_TWO(how, i) \
  KILN_EIGHT(how, c, i), KILN_EIGHT(how, c, i + 8), KILN_EIGHT(how, c, i + 16), KILN_EIGHT(how, c, i + 24)
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
// Columns and depth and the type of the factors are part of the instruction's name; `adds` is 0 where sums begin,
// `operands` are the numbers of the factors and, of two bytes, of whether either is transposed.
#define KILN_WGMMA(adds, cols, type, names, operands, factors, ...)                                              \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " adds                                                          \
               ", 0;\n"                                                                                          \
               "wgmma.mma_async.sync.aligned.m64n" cols ".f32." type "." type " {" names "}, " operands ";\n}\n" \
               : __VA_ARGS__                                                                                     \
               : KILN_LIST factors)
#define KILN_OF_TYPE(adds, cols, names, operands, factors, ...)                 \
  if constexpr (elementary::same<T, f16>)                                       \
    KILN_WGMMA(adds, cols "k16", "f16", names, operands, factors, __VA_ARGS__); \
  else                                                                          \
    KILN_WGMMA(adds, cols "k16", "bf16", names, operands, factors, __VA_ARGS__)
#define KILN_OF_BYTES(adds, cols, names, operands, ...)                             \
  if constexpr (is_e5m2<T>)                                                         \
    KILN_WGMMA(adds, cols "k32", "e5m2", names, operands, KILN_BYTES, __VA_ARGS__); \
  else                                                                              \
    KILN_WGMMA(adds, cols "k32", "e4m3", names, operands, KILN_BYTES, __VA_ARGS__)
#define KILN_LIST(...) __VA_ARGS__
#define KILN_BYTES ("l"(a), "l"(b))
#define KILN_IN_SHARED ("l"(a), "l"(b), "n"(TransposedA), "n"(TransposedB))
#define KILN_IN_REGISTERS ("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TransposedB))
/// Starts c[64, Sums * 2] += a[64, 16] b[16, Sums * 2], or = where it does not `Add`, worked by four warps: warp w
/// holds rows 16 w to 16 w + 15, adjacent atoms in the layout of atom_mma's sums. Floats of eight bits have a depth of
/// 32, are never transposed, and are summed with fewer bits than f32 has.
template <class T, int TransposedA, int TransposedB, bool Add = true, int Sums>
KILN_FN void multiply_wgmma(float (&c)[Sums], u64 a, u64 b) {
  static_assert(Sums == 32 || Sums == 64 || (Sums == 128 && Add));
  if constexpr (sizeof(T) == 1) {
    static_assert(Sums <= 64 && TransposedA == 0 && TransposedB == 0);
    if constexpr (Sums == 32 && Add) {
      KILN_OF_BYTES("1", "64", KILN_NAMES_32, "%32, %33, p, 1, 1", KILN_THIRTY_TWO("+f", 0));
    } else if constexpr (Sums == 32) {
      KILN_OF_BYTES("0", "64", KILN_NAMES_32, "%32, %33, p, 1, 1", KILN_THIRTY_TWO("=f", 0));
    } else if constexpr (Add) {
      KILN_OF_BYTES("1", "128", KILN_NAMES_64, "%64, %65, p, 1, 1", KILN_THIRTY_TWO("+f", 0),
                    KILN_THIRTY_TWO("+f", 32));
    } else {
      KILN_OF_BYTES("0", "128", KILN_NAMES_64, "%64, %65, p, 1, 1", KILN_THIRTY_TWO("=f", 0),
                    KILN_THIRTY_TWO("=f", 32));
    }
  } else if constexpr (Sums == 32 && Add) {
    KILN_OF_TYPE("1", "64", KILN_NAMES_32, "%32, %33, p, 1, 1, %34, %35", KILN_IN_SHARED, KILN_THIRTY_TWO("+f", 0));
  } else if constexpr (Sums == 32) {
    KILN_OF_TYPE("0", "64", KILN_NAMES_32, "%32, %33, p, 1, 1, %34, %35", KILN_IN_SHARED, KILN_THIRTY_TWO("=f", 0));
  } else if constexpr (Sums == 64 && Add) {
    KILN_OF_TYPE("1", "128", KILN_NAMES_64, "%64, %65, p, 1, 1, %66, %67", KILN_IN_SHARED, KILN_THIRTY_TWO("+f", 0),
                 KILN_THIRTY_TWO("+f", 32));
  } else if constexpr (Sums == 64) {
    KILN_OF_TYPE("0", "128", KILN_NAMES_64, "%64, %65, p, 1, 1, %66, %67", KILN_IN_SHARED, KILN_THIRTY_TWO("=f", 0),
                 KILN_THIRTY_TWO("=f", 32));
  } else {
    KILN_OF_TYPE("1", "256", KILN_NAMES_128, "%128, %129, p, 1, 1, %130, %131", KILN_IN_SHARED,
                 KILN_THIRTY_TWO("+f", 0), KILN_THIRTY_TWO("+f", 32), KILN_THIRTY_TWO("+f", 64),
                 KILN_THIRTY_TWO("+f", 96));
  }
}
/// The same += for a in registers as atom_mma has it.
template <class T, int TransposedB, int Sums> KILN_FN void multiply_wgmma(float (&c)[Sums], const u32 (&a)[4], u64 b) {
  static_assert(Sums == 32 || Sums == 64);
  if constexpr (Sums == 32) {
    KILN_OF_TYPE("1", "64", KILN_NAMES_32, "{%32, %33, %34, %35}, %36, p, 1, 1, %37", KILN_IN_REGISTERS,
                 KILN_THIRTY_TWO("+f", 0));
  } else {
    KILN_OF_TYPE("1", "128", KILN_NAMES_64, "{%64, %65, %66, %67}, %68, p, 1, 1, %69", KILN_IN_REGISTERS,
                 KILN_THIRTY_TWO("+f", 0), KILN_THIRTY_TWO("+f", 32));
  }
}
#undef KILN_IN_REGISTERS
#undef KILN_IN_SHARED
#undef KILN_BYTES
#undef KILN_LIST
#undef KILN_OF_BYTES
#undef KILN_OF_TYPE
#undef KILN_WGMMA
#undef KILN_NAMES_128
#undef KILN_NAMES_64
#undef KILN_NAMES_32
#undef KILN_THIRTY_TWO
#undef KILN_EIGHT
#elif !KILN_DEVICE
/// The same by lanes that the CPU runs, each of which sums its elements at once. Shared memory begins at a multiple of
/// 1024 bytes.
template <bool DepthContiguous> u64 describe_tile(const void* at) { return reinterpret_cast<u64>(at); }
inline void wgmma_fence() {}
inline void wgmma_commit() {}
template <int Pending> void wgmma_wait() {}
inline void hold_sums(const auto&) {}
template <class T, int TransposedA, int TransposedB, bool Add = true, int Sums>
void multiply_wgmma(float (&c)[Sums], u64 a, u64 b) {
  constexpr int depth = 32 / sizeof(T);
  // of a row or column `across`; of transposed tiles a line has 64 of them, a block 64 lines
  const auto element = []<bool Transposed>(u64 tile, int across, int depth) {
    const int line = Transposed ? across / 64 * 64 + depth : across, along = Transposed ? across % 64 : depth;
    const u64 at = tile + static_cast<u64>(line * 128 + along * static_cast<int>(sizeof(T)));
    return widen(*reinterpret_cast<const T*>(at ^ (at >> 7 & 7) << 4));
  };
  for (int i = 0; i < Sums; ++i) {
    const place p = atom_mma<T>::c_at(lane_index(), i % 8);
    const int row = thread_index() / warp_lanes % 4 * 16 + p.row, col = i / 8 * 16 + p.depth;
    if (!Add) c[i] = 0;
    for (int k = 0; k < depth; ++k)
      c[i] += element.template operator()<TransposedA != 0>(a, row, k) *
              element.template operator()<TransposedB != 0>(b, col, k);
  }
}
#endif

}  // namespace kiln::gpu
