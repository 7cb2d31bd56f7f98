#pragma once
#include "kiln/op/evaluation.hpp"
#include "kiln/op/linear/window.hpp"

namespace kiln::op {

/// Transposed convolution (ONNX ConvTranspose without bias) of x[n, c, spatial...] and w[c, m / group, kernel...] over
/// one to three spatial dims: every input element adds its scaled kernel to result[n, m, out...], where
/// out = stride * (in - 1) + (kernel - 1) * dilation + 1 + output_padding - pads. Begins come before ends in `pads`.
struct deconvolution {
  spatial stride{}, dilation{}, output_padding{};
  ints pads{};
  std::int64_t group = 1;
  static constexpr auto types = dtypes::floats;

  constexpr deconvolution normalized(std::span<const shape> in) const { return detail::with_window(*this, in); }
  void agree(extent_agreement& extents) const {
    if (extents.operands() == 2 && extents.rank(0) > 2 && extents.rank(1) == extents.rank(0)) extents.agree(0, 1, 1, 0);
  }
  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::image_and_weight_fault(in, types)) return *f;
    const shape &x = in[0], &w = in[1];
    const auto window = detail::resolve_window(x.rank(), stride, dilation, pads);
    if (!window) return window.why();
    const std::size_t axes = x.rank() - 2;
    if (w.rank() != x.rank())
      return fault::of(errc::shape_mismatch, "the weight has the input's rank", x.rank(), w.rank());
    if (group < 1) return fault::of(errc::invalid_argument, "group is positive", "at least 1", group);
    if (!(x.lens[1] == w.lens[0]))
      return fault::of(errc::shape_mismatch, "input channels are the weight's first dim", w.lens[0], x.lens[1]);
    if (group > 1 && !(x.lens[1] % group == dimension(0)))
      return fault::of(errc::shape_mismatch, "input channels divide into groups", group, x.lens[1]);
    if (!output_padding.empty() && output_padding.size() != axes)
      return fault::of(errc::shape_mismatch, "output_padding has an entry for each spatial dim", axes,
                       output_padding.size());
    shape out{x.type, {x.lens[0], w.lens[1] * group}};
    for (std::size_t d = 0; d < axes; ++d) {
      const dimension length = w.lens[d + 2], extra = output_padding.empty() ? 0 : output_padding[d];
      if (const auto some = at_most(1, length); some && !*some)
        return fault::of(errc::shape_mismatch, "a window has at least one element", 1, length);
      out.lens.push_back((x.lens[d + 2] - 1) * window->stride[d] + detail::window_reach(length, window->dilation[d]) +
                         extra - (window->begin[d] + window->end[d]));
      if (const auto fits = at_most(0, out.lens.back()); fits && !*fits)
        return fault::of(errc::shape_mismatch, "pads leave no negative extent", "at least 0", out.lens.back());
    }
    return out;
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto x = e.template in<T>(0), w = e.template in<T>(1);
    const auto y = e.template out<T>();
    const std::size_t axes = x.rank() - 2;
    // missing spatial dims have extent 1, so that one loop serves one to three
    std::int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, len[3] = {1, 1, 1}, s[3] = {1, 1, 1}, dil[3] = {1, 1, 1},
                 begin[3] = {};
    for (std::size_t d = 0; d < axes; ++d) {
      in[d] = x.lens[d + 2], out[d] = y.lens[d + 2], len[d] = w.lens[d + 2];
      if (!stride.empty()) s[d] = stride[d];
      if (!dilation.empty()) dil[d] = dilation[d];
      if (!pads.empty()) begin[d] = pads[d];
    }
    const std::int64_t channels = x.lens[1] / group, filters = w.lens[1];
    const auto source = [&](int d, std::int64_t o, std::int64_t k) {
      const std::int64_t p = o + begin[d] - k * dil[d];
      return p >= 0 && p % s[d] == 0 && p / s[d] < in[d] ? p / s[d] : -1;
    };
    std::int64_t at = 0;
    for (std::int64_t n = 0; n < x.lens[0]; ++n)
      for (std::int64_t m = 0; m < filters * group; ++m)
        for (std::int64_t a = 0; a < out[0]; ++a)
          for (std::int64_t b = 0; b < out[1]; ++b)
            for (std::int64_t c = 0; c < out[2]; ++c) {
              double sum = 0;
              for (std::int64_t i = 0; i < len[0]; ++i) {
                const std::int64_t p = source(0, a, i);
                for (std::int64_t j = 0; p >= 0 && j < len[1]; ++j) {
                  const std::int64_t q = source(1, b, j);
                  for (std::int64_t k = 0; q >= 0 && k < len[2]; ++k) {
                    const std::int64_t r = source(2, c, k);
                    for (std::int64_t h = 0; r >= 0 && h < channels; ++h) {
                      const std::int64_t channel = m / filters * channels + h;
                      sum += static_cast<double>(x[(((n * x.lens[1] + channel) * in[0] + p) * in[1] + q) * in[2] + r]) *
                             static_cast<double>(
                                 w[(((channel * filters + m % filters) * len[0] + i) * len[1] + j) * len[2] + k]);
                    }
                  }
                }
              }
              y[at++] = static_cast<T>(sum);
            }
  }
};

}  // namespace kiln::op
