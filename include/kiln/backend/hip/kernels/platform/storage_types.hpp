#pragma once
#include "kiln/core/math/types.hpp"

// What every platform of tile kernels shares: number types as they are stored, and hints.

/// KILN_UNROLL before a loop writes all of its rounds out, KILN_NO_UNROLL keeps it a loop;
/// KILN_SHARED declares memory that the threads of a block share.
#if KILN_DEVICE
#define KILN_UNROLL _Pragma("unroll")
#define KILN_NO_UNROLL _Pragma("unroll 1")
#define KILN_SHARED __shared__
#else
#define KILN_UNROLL
#define KILN_NO_UNROLL
#define KILN_SHARED static
#endif

namespace kiln::gpu {

using u16 = unsigned short;
using u32 = scalar::u32;
using i64 = scalar::i64;
using u64 = scalar::u64;

/// Threads that run in step: a warp, or a wavefront.
#if KILN_WAVE64
inline constexpr int warp_lanes = 64;
#else
inline constexpr int warp_lanes = 32;
#endif

/// IEEE binary16 and bfloat16 as storage.
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};

/// Whether a float of eight bits (narrow.hpp) has five for its exponent.
template <class T> inline constexpr bool is_e5m2 = false;

/// N elements that one instruction moves.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack { T at[N]; };

/// How the copy unit of sm_90 sees a tensor: what the driver made of it.
struct alignas(64) tensor_map {
  u64 words[16];
};

}  // namespace kiln::gpu
