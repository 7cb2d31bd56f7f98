#pragma once
#include "kiln/op/index/common.hpp"
#include "kiln/op/linear/fourier_sum.hpp"

namespace kiln::op {

/// The discrete Fourier transform of x[..., 1 or 2] along `axis` (ONNX DFT; NumPy's fft, rfft, ifft, irfft). The last
/// dim holds the parts of a number: one of real signals, else two. A signal of another length than `length` is cut, or
/// padded with zeros; 0 is its own length. `inverse` divides by the length. `one_sided` makes the length / 2 + 1 first
/// numbers of a real signal's spectrum or, with `inverse`, the real signal [..., 1] of such a spectrum, whose own
/// length is twice its extent less two.
struct dft {
  std::int64_t axis = -2;
  bool inverse = false;
  bool one_sided = false;
  dimension length = 0;
  static constexpr auto types = dtypes::floats;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::axis_fault(in, axis, types)) return *f;
    const std::size_t rank = in[0].rank();
    const auto along = static_cast<std::size_t>(normal_axis(axis, rank));
    if (along + 1 == rank)
      return fault::of(errc::shape_mismatch, "the last dim holds the parts of a number", "another axis", axis);
    const dimension parts = in[0].lens[rank - 1];
    const bool is_complex = parts == dimension(2);
    if (!is_complex && !(parts == dimension(1)))
      return fault::of(errc::shape_mismatch, "the last extent is 1 (real) or 2 (complex)", "1 or 2", parts);
    if (one_sided && !inverse && is_complex)
      return fault::of(errc::shape_mismatch, "a one-sided spectrum is that of a real signal", 1, parts);
    dims lens = in[0].lens;
    const dimension n = length_of(lens[along]);
    lens[along] = one_sided && !inverse ? n / 2 + 1 : n;
    lens[rank - 1] = one_sided && inverse ? 1 : 2;
    return shape{in[0].type, lens};
  }

  /// The transform's length for a signal of `own` numbers.
  constexpr dimension length_of(dimension own) const {
    if (!(length == dimension(0))) return length;
    return one_sided && inverse ? (own - 1) * 2 : own;
  }
  /// How a signal of `own` numbers is read for a transform of length n.
  constexpr detail::fourier_signal signal_of(std::int64_t own, std::int64_t n, bool is_complex) const {
    const bool half = one_sided && inverse;
    const std::int64_t most = half ? n / 2 + 1 : n;
    return {n, own < most ? own : most, is_complex, half};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto x = e.template in<T>(0);
    const auto y = e.template out<T>();
    const auto from = detail::split_at(x.lens, axis), to = detail::split_at(y.lens, axis);
    const std::int64_t parts = x.lens.back(), made = y.lens.back(), inner = from.inner / parts;
    const std::int64_t n = one_sided && !inverse ? e.number(length_of(from.extent)) : to.extent;
    const auto signal = signal_of(from.extent, n, parts == 2);
    const detail::fourier_lines lines{from.extent, to.extent, inner, parts, made, inverse};
    for (std::int64_t at = 0, all = from.outer * to.extent * inner; at < all; ++at)
      lines.put(
          y.data, x.data, signal, at, [](T v) { return static_cast<double>(v); },
          [](double v) { return static_cast<T>(v); });
  }
};

}  // namespace kiln::op
