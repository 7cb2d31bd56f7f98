#pragma once
#include "kiln/backend/hip/kernels/platform/storage_types.hpp"

// The instructions of tile kernels under one set of names. The host compiles a kernel with -DKILN_NVIDIA or -DKILN_AMD;
// without either, a program on the CPU emulates the device, lane by lane.

#if KILN_NVIDIA
#include "kiln/backend/hip/kernels/platform/nvidia.hpp"
#elif KILN_AMD
#include "kiln/backend/hip/kernels/platform/amd.hpp"
#else
#include "kiln/backend/hip/kernels/platform/emulated.hpp"
#include "kiln/backend/hip/kernels/platform/emulated_copies.hpp"
#endif

namespace kiln::gpu {

/// The first call of a kernel that reads nothing before the one before it ends.
KILN_FN void begin_kernel() {
  let_next_begin();
  await_last();
}

/// The type in which elements are multiplied and summed.
template <class T> struct sum_type { using type = T; };
template <> struct sum_type<f16> { using type = float; };
template <> struct sum_type<bf16> { using type = float; };
template <class T> using sum_t = typename sum_type<T>::type;

/// An element as the type it is summed in, and back.
template <class T> KILN_FN sum_t<T> widen(T x) {
  if constexpr (elementary::same<T, f16>)
    return float_of_half(x.bits);
  else if constexpr (elementary::same<T, bf16>)
    return bits_as_float(static_cast<u32>(x.bits) << 16);
  else  // narrow.hpp: of floats of eight bits
    return static_cast<sum_t<T>>(x);
}
template <class T, class S> KILN_FN T narrow(S x) {
  if constexpr (elementary::same<T, f16>)
    return f16{half_of_float(static_cast<float>(x))};
  else if constexpr (elementary::same<T, bf16>)
    return bf16{bfloat_of_float(static_cast<float>(x))};
  else
    return static_cast<T>(x);
}

}  // namespace kiln::gpu
