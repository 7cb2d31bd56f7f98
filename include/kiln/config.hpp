#pragma once

// Every question about the compiler, the instruction set and the platform is asked here and nowhere else.
// This header is freestanding: hiprtc and NVRTC compile it as it is.

/// KILN_FN marks a function that host and device code inline alike, KILN_SLOW one that stays out of line.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define KILN_FN __host__ __device__ __forceinline__
#define KILN_SLOW __host__ __device__
#define KILN_DEVICE 1
#elif defined(__HIP__) || defined(__HIPCC__)
#define KILN_FN __attribute__((host)) __attribute__((device)) __attribute__((always_inline)) inline
#define KILN_SLOW __attribute__((host)) __attribute__((device))
#define KILN_DEVICE 1
#else
#define KILN_FN __attribute__((always_inline)) inline
#define KILN_SLOW __attribute__((noinline))
#define KILN_DEVICE 0
#endif

/// A C math function that is one instruction or a libm call at run time: KILN_LIBM(sqrtf)(x).
#if defined(__CUDACC_RTC__) || (defined(__CUDACC__) && !defined(__clang__))
#define KILN_LIBM(name) ::name
#else
#define KILN_LIBM(name) __builtin_##name
#endif

/// 1 in debug builds: invariants whose check costs time are checked.
#if defined(NDEBUG) || KILN_DEVICE
#define KILN_CHECKED 0
#else
#define KILN_CHECKED 1
#endif

/// 1 where reads and writes beyond an allocation are found as the program runs.
#if defined(__SANITIZE_ADDRESS__)
#define KILN_SANITIZES_ADDRESSES 1
#elif defined(__has_feature)
#define KILN_SANITIZES_ADDRESSES __has_feature(address_sanitizer)
#else
#define KILN_SANITIZES_ADDRESSES 0
#endif

/// 1 where the compiler has GNU vector extensions for the code at hand.
#if KILN_DEVICE || !defined(__GNUC__)
#define KILN_HAS_VECTORS 0
#else
#define KILN_HAS_VECTORS 1
#endif

/// Lane-by-lane conversion of vector `v` to type `To`.
#if KILN_HAS_VECTORS
#define KILN_CONVERT_VECTOR(v, To) __builtin_convertvector(v, To)
#else
#define KILN_CONVERT_VECTOR(v, To) To(v)
#endif

/// 1 where the processor has x86's control register for denormals and its pause instruction.
#if !KILN_DEVICE && defined(__SSE2__)
#define KILN_HAS_MXCSR 1
#else
#define KILN_HAS_MXCSR 0
#endif

/// 1 under clang, which warns where a declared variable's address is taken at compile time and no definition follows.
#ifdef __clang__
#define KILN_CLANG 1
#else
#define KILN_CLANG 0
#endif

/// 1 where fused multiply-add is an instruction; kiln's elementary functions then use it.
#if KILN_DEVICE || defined(__FMA__) || defined(__AVX512F__) || defined(__ARM_FEATURE_FMA)
#define KILN_HAS_FMA 1
#else
#define KILN_HAS_FMA 0
#endif

/// Bytes of the widest vector register, and the header with its instructions (included by core/simd.hpp).
#if KILN_DEVICE
#define KILN_NATIVE_BYTES 16
#elif defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define KILN_NATIVE_BYTES 64
#define KILN_SIMD_HEADER "kiln/core/simd/avx512.hpp"
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define KILN_NATIVE_BYTES 32
#define KILN_SIMD_HEADER "kiln/core/simd/avx2.hpp"
#elif defined(__SSE2__)
#define KILN_NATIVE_BYTES 16
#define KILN_SIMD_HEADER "kiln/core/simd/sse2.hpp"
#else
#define KILN_NATIVE_BYTES 16
#define KILN_SIMD_HEADER "kiln/core/simd/portable.hpp"
#endif

/// The header with the instructions of the processor's matrix unit (included by kernel/amx/matrix_unit.hpp).
#if KILN_NATIVE_BYTES == 64 && defined(__linux__)
#define KILN_MATRIX_UNIT_HEADER "kiln/kernel/amx/matrix_unit_amx.hpp"
#else
#define KILN_MATRIX_UNIT_HEADER "kiln/kernel/amx/matrix_unit_none.hpp"
#endif

// Vectors wider than the instruction set's registers are passed between inlined functions only, so the ABI that this
// warning is about is never used. GCC reports it at the instantiation, hence no pop.
#if KILN_HAS_VECTORS
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace kiln::scalar {

#if defined(__INT32_TYPE__) && defined(__INT64_TYPE__)
using i32 = __INT32_TYPE__;
using u32 = __UINT32_TYPE__;
using i64 = __INT64_TYPE__;
using u64 = __UINT64_TYPE__;
#else
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;
#endif

}  // namespace kiln::scalar

namespace kiln {

/// Whether elementary functions use fused multiply-add in this translation unit.
inline constexpr bool has_fma = KILN_HAS_FMA;

/// Bytes of the widest vector register of this translation unit's instruction set.
inline constexpr int native_bytes = KILN_NATIVE_BYTES;

}  // namespace kiln
