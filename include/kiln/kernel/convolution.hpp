#pragma once

#include <variant>

#include "kiln/kernel/convolution_channels.hpp"
#include "kiln/kernel/convolution_pixels.hpp"
#include "kiln/kernel/convolution_planes.hpp"

namespace kiln::kernels {

/// The epilogue that leaves a convolution's sums as they are.
struct no_conv_epilogue {
  template <class T>
  void operator()(std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, T*, std::ptrdiff_t) const {}
};

/// Whether a method reads weights that `pack_conv_weights` wrote, or the original ones.
constexpr bool conv_packs_weights(conv_method method) { return method == conv_method::channels; }

/// Elements of the weights that `convolution::run` reads.
template <class T>
std::int64_t conv_weights_size(const conv_problem& p, conv_method method) {
  return conv_packs_weights(method) ? channel_convolution<T>::weights_size(p) : p.out_channels * p.depth();
}

/// Writes the weights in the order that `method` reads; independent of the spatial sizes.
template <class T>
void pack_conv_weights(thread_pool& pool, const conv_problem& p, conv_method method, T* to, const T* weights) {
  if (conv_packs_weights(method))
    channel_convolution<T>::pack_weights(pool, p, to, weights);
  else
    std::copy_n(weights, p.out_channels * p.depth(), to);
}

/// A convolution planned for its sizes and for at most `workers` workers; running it allocates nothing.
template <class T>
class convolution {
 public:
  convolution(const conv_problem& problem, unsigned workers, conv_method method)
      : problem_(problem), method_(method), workers_(workers), body_(plan(problem, workers, method)) {}

  conv_method method() const { return method_; }

  /// Elements of scratch, aligned to 64 bytes, that a run needs.
  std::int64_t scratch_size() const {
    const std::int64_t each = std::visit([](const auto& body) { return body.scratch_size(); }, body_);
    return round_up(each, native_lanes<T>) * workers_;
  }

  /// Reads input [batch, in_channels, D, H, W] and weights (see `conv_packs_weights`), writes output
  /// [batch, out_channels, D', H', W']. `epilogue(image, channel0, channels, pixel0, pixels, c, c_row)` is called once
  /// for each finished tile while it is in the cache, from any worker. `pool` has at most the planned number of
  /// workers.
  template <class Epilogue = no_conv_epilogue>
  void run(thread_pool& pool, const T* input, const T* weights, T* output, T* scratch, Epilogue&& epilogue = {}) const {
    if (problem_.empty()) return;
    std::visit([&](const auto& body) { body.run(pool, input, weights, output, scratch, epilogue); }, body_);
  }

 private:
  using body = std::variant<channel_convolution<T>, pixel_convolution<T>, plane_convolution<T>>;

  static body plan(const conv_problem& p, unsigned workers, conv_method method) {
    if (method == conv_method::channels) return channel_convolution<T>(p, workers);
    if (method == conv_method::pixels) return pixel_convolution<T>(p);
    return plane_convolution<T>(p);
  }

  conv_problem problem_;
  conv_method method_;
  unsigned workers_;
  body body_;
};

}  // namespace kiln::kernels
