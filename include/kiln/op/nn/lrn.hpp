#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/evaluation.hpp"

namespace kiln::op {

/// Local response normalization of x[n, c, ...] across channels (ONNX LRN; Krizhevsky et al. 2012):
/// x / (bias + alpha / size * sum of squares over `size` channels around)^beta.
struct lrn {
  std::int64_t size = 1;
  float alpha = 0.0001f, beta = 0.75f, bias = 1.0f;
  static constexpr auto types = dtypes::floats;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return fault::of(errc::invalid_argument, "number of inputs", 1, in.size());
    if (!types.contains(in[0].type))
      return fault::of(errc::unsupported, "dtype of the operand", "one that the op computes in", in[0].type);
    if (in[0].rank() < 2)
      return fault::of(errc::shape_mismatch, "an input has a batch and a channel dim", "rank of at least 2",
                       in[0].rank());
    if (size < 1) return fault::of(errc::invalid_argument, "size is positive", "at least 1", size);
    return shape{in[0].type, in[0].lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto x = e.template in<T>(0);
    const auto y = e.template out<T>();
    const std::int64_t channels = x.lens[1], before = (size - 1) / 2, after = size - 1 - before;
    std::int64_t inner = 1;
    for (std::size_t d = 2; d < x.rank(); ++d) inner *= x.lens[d];
    for (std::int64_t n = 0; n < x.lens[0]; ++n)
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t i = 0; i < inner; ++i) {
          const std::int64_t low = c > before ? c - before : 0, high = c + after < channels ? c + after : channels - 1;
          double sum = 0;
          for (std::int64_t k = low; k <= high; ++k) {
            const auto v = static_cast<double>(x[(n * channels + k) * inner + i]);
            sum += v * v;
          }
          const std::int64_t at = (n * channels + c) * inner + i;
          const double scale = static_cast<double>(bias) + static_cast<double>(alpha) / static_cast<double>(size) * sum;
          y[at] = static_cast<T>(static_cast<double>(x[at]) / kiln::pow(scale, static_cast<double>(beta)));
        }
  }
};

}  // namespace kiln::op
