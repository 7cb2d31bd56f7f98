#pragma once
#include "kiln/backend/hip/kernels/storage_types.hpp"

// What tile kernels ask of the machine, under one set of names: the platform's header gives them their instructions.
// The host that compiles a kernel says which platform with -DKILN_NVIDIA or -DKILN_AMD; without either, a program on
// the CPU stands for the device, lane by lane.

#if KILN_NVIDIA
#include "kiln/backend/hip/kernels/nvidia.hpp"
#elif KILN_AMD
#include "kiln/backend/hip/kernels/amd.hpp"
#else
#include "kiln/backend/hip/kernels/emulated.hpp"
#endif

namespace kiln::device {

/// What a kernel begins with that reads nothing before.
KILN_FN void begin_kernel() {
  let_next_begin();
  await_last();
}

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
