#pragma once
#include "kiln/backend/hip/kernels/platform/elements.hpp"
#include "kiln/backend/hip/kernels/sequence/arguments.hpp"
#include "kiln/op/linear/fourier_sum.hpp"

namespace kiln::gpu {

/// Number `at` of Fourier transforms; see op/linear/dft.hpp.
template <bool Inverse, class T> KILN_FN void fourier(T* out, const T* in, const fourier_sizes& n, i64 at) {
  const detail::fourier_lines lines{n.from, n.to, n.inner, n.parts, n.made, Inverse};
  const detail::fourier_signal signal{n.length, n.given, n.parts == 2, n.is_half != 0};
  lines.put(
      out, in, signal, at, [](T v) { return static_cast<double>(value_of(v)); },
      [](double v) { return stored<T>(static_cast<decltype(value_of(T{}))>(v)); });
}

}  // namespace kiln::gpu
