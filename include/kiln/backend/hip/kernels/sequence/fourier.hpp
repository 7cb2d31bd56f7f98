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

/// Transform `row` of a power of two numbers, 2^Bits, by a block of `Lanes` threads: Cooley and Tukey's (1965), in
/// shared memory, of the operand's precision with roots rounded once.
template <bool Inverse, int Bits, int Lanes, class T>
KILN_FN void fourier_block(T* out, const T* in, const fourier_sizes& n, i64 row, int lane) {
  using V = decltype(value_of(T{}));
  constexpr int count = 1 << Bits;
  constexpr double scale = Inverse ? 1.0 / count : 1.0;
  struct number {
    V real, imaginary;
  };
  KILN_SHARED number values[count];
  KILN_SHARED number roots[count / 2];
  const i64 outer = row / n.inner, i = row - outer * n.inner;
  const T* const line = in + (outer * n.from * n.inner + i) * n.parts;
  const detail::fourier_signal signal{n.length, n.given, n.parts == 2, n.is_half != 0};
  for (int j = lane; j < count / 2; j += Lanes) {
    const detail::complex_number root = detail::unit_root(j, count, Inverse ? 1 : -1);
    roots[j] = {static_cast<V>(root.real), static_cast<V>(root.imaginary)};
  }
  for (int j = lane; j < count; j += Lanes) {
    const detail::complex_number x = signal.at(
        j, [&](i64 at, i64 part) { return static_cast<double>(value_of(line[at * n.inner * n.parts + part])); });
    int turned = 0;  // the number's bits in reverse
    KILN_UNROLL
    for (int b = 0; b < Bits; ++b) turned |= (j >> b & 1) << (Bits - 1 - b);
    // an inverse is divided by its count before the sums: by a power of two, and no sum is greater than its operands
    values[turned] = {static_cast<V>(x.real * scale), static_cast<V>(x.imaginary * scale)};
  }
  sync_block();
  KILN_UNROLL
  for (int b = 0; b < Bits; ++b) {
    const int half = 1 << b;
    for (int j = lane; j < count / 2; j += Lanes) {
      const int k = j & (half - 1), low = ((j - k) << 1) + k;
      const number root = roots[k << (Bits - 1 - b)], a = values[low], c = values[low + half];
      const number turned{c.real * root.real - c.imaginary * root.imaginary,
                          c.real * root.imaginary + c.imaginary * root.real};
      values[low] = {a.real + turned.real, a.imaginary + turned.imaginary};
      values[low + half] = {a.real - turned.real, a.imaginary - turned.imaginary};
    }
    sync_block();
  }
  for (i64 k = lane; k < n.to; k += Lanes) {
    T* const to = out + ((outer * n.to + k) * n.inner + i) * n.made;
    to[0] = stored<T>(values[k].real);
    if (n.made == 2) to[1] = stored<T>(values[k].imaginary);
  }
}

}  // namespace kiln::gpu
