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

template <class V> struct fourier_number { V real, imaginary; };
template <class V> KILN_FN fourier_number<V> operator+(fourier_number<V> a, fourier_number<V> b) {
  return {a.real + b.real, a.imaginary + b.imaginary};
}
template <class V> KILN_FN fourier_number<V> operator-(fourier_number<V> a, fourier_number<V> b) {
  return {a.real - b.real, a.imaginary - b.imaginary};
}
template <class V> KILN_FN fourier_number<V> operator*(fourier_number<V> a, fourier_number<V> b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

/// Entry `at` of the table that transforms read, rounded once: exp(-2 pi i j / 2^Bits) for j < 2^Bits / 2, then, where
/// `n.length` is no power of two, exp(sign pi i j^2 / length) for j < length.
template <bool Inverse, int Bits, class V>
KILN_FN void fourier_entry(fourier_number<V>* table, const fourier_sizes& n, i64 at) {
  constexpr i64 count = i64{1} << Bits, roots = count / 2;
  const i64 j = at - roots;
  const detail::complex_number root = at < roots
                                          ? detail::unit_root(at, count, -1)
                                          : detail::unit_root(j * j % (2 * n.length), 2 * n.length, Inverse ? 1 : -1);
  table[at] = {static_cast<V>(root.real), static_cast<V>(root.imaginary)};
}

/// Transforms of 2^Bits numbers in shared memory by a block of `Lanes` threads, two of Cooley and Tukey's (1965) steps
/// at once; `roots` as in the table, or their conjugates. From numbers in the order of their bits in reverse.
template <int Bits, int Lanes, bool Conjugate, class V>
KILN_FN void join_halves(fourier_number<V>* values, const fourier_number<V>* roots, int lane) {
  using number = fourier_number<V>;
  constexpr int count = 1 << Bits;
  constexpr V sign = Conjugate ? V(-1) : V(1);
  if constexpr (Bits % 2 == 1) {
    for (int j = 2 * lane; j < count; j += 2 * Lanes) {
      const number a = values[j], b = values[j + 1];
      values[j] = a + b, values[j + 1] = a - b;
    }
    sync_block();
  }
  for (int b = Bits % 2; b < Bits; b += 2) {
    const int half = 1 << b;
    for (int j = lane; j < count / 4; j += Lanes) {
      const int k = j & (half - 1);
      number* const at = values + ((j - k) << 2) + k;
      number one = roots[k << (Bits - 1 - b)], two = roots[k << (Bits - 2 - b)];
      one.imaginary *= sign, two.imaginary *= sign;
      const number s = at[half] * one, t = at[3 * half] * one;
      const number first = at[0] + s, second = at[0] - s, third = (at[2 * half] + t) * two,
                   last = (at[2 * half] - t) * two, turned{sign * last.imaginary, -sign * last.real};
      at[0] = first + third, at[2 * half] = first - third;
      at[half] = second + turned, at[3 * half] = second - turned;
    }
    sync_block();
  }
}
/// The same from numbers in order, to the order of their bits in reverse.
template <int Bits, int Lanes, class V>
KILN_FN void part_halves(fourier_number<V>* values, const fourier_number<V>* roots, int lane) {
  using number = fourier_number<V>;
  constexpr int count = 1 << Bits;
  for (int b = Bits - 2; b >= 0; b -= 2) {
    const int half = 1 << b;
    for (int j = lane; j < count / 4; j += Lanes) {
      const int k = j & (half - 1);
      number* const at = values + ((j - k) << 2) + k;
      const number one = roots[k << (Bits - 1 - b)], two = roots[k << (Bits - 2 - b)];
      const number first = at[0] + at[2 * half], second = at[half] + at[3 * half], third = (at[0] - at[2 * half]) * two,
                   last = (at[half] - at[3 * half]) * two, turned{last.imaginary, -last.real};
      at[0] = first + second, at[half] = (first - second) * one;
      at[2 * half] = third + turned, at[3 * half] = (third - turned) * one;
    }
    sync_block();
  }
  if constexpr (Bits % 2 == 1) {
    for (int j = 2 * lane; j < count; j += 2 * Lanes) {
      const number a = values[j], b = values[j + 1];
      values[j] = a + b, values[j + 1] = a - b;
    }
    sync_block();
  }
}

/// Transform `row`: what it reads and writes.
template <bool Inverse, class T> struct fourier_row {
  using number = fourier_number<decltype(value_of(T{}))>;
  T* out;
  const T* line;
  const fourier_sizes& n;
  detail::fourier_signal signal;
  double scale;  ///< of what is read: of an inverse, so that no sum is greater than its operands
  KILN_FN fourier_row(T* to, const T* in, const fourier_sizes& sizes, i64 row) : n(sizes) {
    const i64 outer = row / n.inner, i = row - outer * n.inner;
    line = in + (outer * n.from * n.inner + i) * n.parts;
    out = to + (outer * n.to * n.inner + i) * n.made;
    signal = {n.length, n.given, n.parts == 2, n.is_half != 0};
    scale = Inverse ? 1.0 / static_cast<double>(n.length) : 1.0;
  }
  KILN_FN number operator[](i64 j) const {
    const detail::complex_number x = signal.at(
        j, [&](i64 at, i64 part) { return static_cast<double>(value_of(line[at * n.inner * n.parts + part])); });
    return {static_cast<decltype(number{}.real)>(x.real * scale),
            static_cast<decltype(number{}.real)>(x.imaginary * scale)};
  }
  KILN_FN void put(i64 k, number made) const {
    T* const to = out + k * n.inner * n.made;
    to[0] = stored<T>(made.real);
    if (n.made == 2) to[1] = stored<T>(made.imaginary);
  }
};

/// Transform `row` of a power of two numbers, 2^Bits, by a block, in the operand's precision; `shared` has room for
/// half as many again.
template <bool Inverse, int Bits, int Lanes, class T, class V>
KILN_FN void fourier_block(T* out, const T* in, const fourier_number<V>* table, const fourier_sizes& n, i64 row,
                           int lane, char* shared) {
  constexpr int count = 1 << Bits;
  auto* const values = reinterpret_cast<fourier_number<V>*>(shared);
  const fourier_row<Inverse, T> x(out, in, n, row);
  for (int j = lane; j < count / 2; j += Lanes) values[count + j] = table[j];
  for (int j = lane; j < count; j += Lanes) {
    int turned = 0;  // the number's bits in reverse
    KILN_UNROLL
    for (int b = 0; b < Bits; ++b) turned |= (j >> b & 1) << (Bits - 1 - b);
    values[turned] = x[j];
  }
  sync_block();
  join_halves<Bits, Lanes, Inverse>(values, values + count, lane);
  for (i64 k = lane; k < n.to; k += Lanes) x.put(k, values[k]);
}

/// What transforms of another length than a power of two multiply by, after the table's other entries: the transform of
/// the conjugates of exp(sign pi i j^2 / length), whose j counts from both ends, over 2^Bits. By one block.
template <int Bits, int Lanes, class V>
KILN_FN void fourier_chirp(fourier_number<V>* table, const fourier_sizes& n, int lane, char* shared) {
  constexpr int count = 1 << Bits;
  auto* const values = reinterpret_cast<fourier_number<V>*>(shared);
  const fourier_number<V>* const chirps = table + count / 2;
  for (int j = lane; j < count; j += Lanes) {
    const int m = j < count - j ? j : count - j;
    values[j] = m < n.length ? fourier_number<V>{chirps[m].real, -chirps[m].imaginary} : fourier_number<V>{V(0), V(0)};
    if (j < count / 2) values[count + j] = table[j];
  }
  sync_block();
  part_halves<Bits, Lanes>(values, values + count, lane);
  constexpr V scale = V(1) / count;
  for (int j = lane; j < count; j += Lanes)
    table[count / 2 + n.length + j] = {values[j].real * scale, values[j].imaginary * scale};
}

/// Transform `row` of any number, by a block: Bluestein's (1970), a circular convolution of 2^Bits >= 2 length - 1
/// numbers.
template <bool Inverse, int Bits, int Lanes, class T, class V>
KILN_FN void fourier_by_chirps(T* out, const T* in, const fourier_number<V>* table, const fourier_sizes& n, i64 row,
                               int lane, char* shared) {
  constexpr int count = 1 << Bits;
  auto* const values = reinterpret_cast<fourier_number<V>*>(shared);
  const fourier_number<V>*const chirps = table + count / 2, *const spectrum = chirps + n.length;
  const fourier_row<Inverse, T> x(out, in, n, row);
  for (int j = lane; j < count; j += Lanes) {
    values[j] = j < n.length ? x[j] * chirps[j] : fourier_number<V>{V(0), V(0)};
    if (j < count / 2) values[count + j] = table[j];
  }
  sync_block();
  part_halves<Bits, Lanes>(values, values + count, lane);
  for (int j = lane; j < count; j += Lanes) values[j] = values[j] * spectrum[j];
  sync_block();
  join_halves<Bits, Lanes, true>(values, values + count, lane);
  for (i64 k = lane; k < n.to; k += Lanes) x.put(k, values[k] * chirps[k]);
}

}  // namespace kiln::gpu
