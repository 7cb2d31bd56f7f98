#pragma once
#include "kiln/core/math/types.hpp"

// What tile kernels ask of the machine, under one set of names: the platform's header gives them their instructions.
// The host that compiles a kernel says which platform with -DKILN_NVIDIA or -DKILN_AMD; without either, a program on
// the CPU stands for the device, lane by lane.

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

namespace kiln::device {

using u16 = unsigned short;
using u32 = scalar::u32;
using i64 = scalar::i64;
using u64 = scalar::u64;

/// IEEE binary16 and bfloat16 as storage.
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};

/// N elements that one instruction moves.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack {
  T at[N];
};

}  // namespace kiln::device

#if KILN_NVIDIA
#include "kiln/backend/hip/kernels/nvidia.hpp"
#elif KILN_AMD
#include "kiln/backend/hip/kernels/amd.hpp"
#else
#include "kiln/backend/hip/kernels/emulated.hpp"
#endif

namespace kiln::device {

/// The type in which elements are multiplied and summed.
template <class T>
struct sum_type {
  using type = T;
};
template <>
struct sum_type<f16> {
  using type = float;
};
template <>
struct sum_type<bf16> {
  using type = float;
};
template <class T>
using sum_t = typename sum_type<T>::type;

/// An element as the type it is summed in, and back.
template <class T>
KILN_FN sum_t<T> widen(T x) {
  if constexpr (elementary::same<T, f16>)
    return float_of_half(x.bits);
  else if constexpr (elementary::same<T, bf16>)
    return bits_as_float(static_cast<u32>(x.bits) << 16);
  else
    return x;
}
template <class T, class S>
KILN_FN T narrow(S x) {
  if constexpr (elementary::same<T, f16>)
    return f16{half_of_float(static_cast<float>(x))};
  else if constexpr (elementary::same<T, bf16>)
    return bf16{bfloat_of_float(static_cast<float>(x))};
  else
    return static_cast<T>(x);
}

}  // namespace kiln::device
