#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kiln/kernel/gemm/pack.hpp"

namespace kiln::kernels {

/// Strides of NCHW images whose channels are dense but not adjacent: channels form runs of `each`.
struct nchw_strides {
  std::int64_t each = 1;
  std::ptrdiff_t image = 0, run = 0, channel = 0;  ///< strides in elements

  static constexpr nchw_strides row_major(std::int64_t channels, std::int64_t pixels) {
    return {std::max<std::int64_t>(channels, 1), channels * pixels, 0, pixels};
  }
  constexpr std::ptrdiff_t at(std::int64_t of_image, std::int64_t of_channel) const {
    const std::int64_t runs = of_channel < each ? 0 : quotient(of_channel, each);
    return of_image * image + runs * run + (of_channel - runs * each) * channel;
  }
  friend constexpr bool operator==(const nchw_strides&, const nchw_strides&) = default;
};

/// The layout of a batch of images: NCHW ([batch, channels, pixels], row-major unless `nchw` has strides), or NHWC,
/// where channel c of pixel i of image n is element `(n * pixels + i) * step + c` and `step` is at least the number of
/// channels.
struct image_layout {
  bool nhwc = false;
  std::ptrdiff_t step = 0;  ///< NHWC: elements between adjacent pixels
  std::optional<nchw_strides> nchw = {};

  friend constexpr bool operator==(const image_layout&, const image_layout&) = default;
};

/// Copies images between NCHW and NHWC.
template <class T> class image_conversion {
 public:
  image_conversion(std::int64_t batch, std::int64_t channels, std::int64_t pixels)
      : batch_(batch), channels_(channels), pixels_(pixels) {}

  /// to[n, i, c] = from[n, c, i]; pixels of `to` are `step` elements apart.
  void to_nhwc(thread_pool& pool, const T* from, T* to, std::ptrdiff_t step) const {
    run(pool, [&](std::int64_t image, std::int64_t pixel, std::int64_t pixels) {
      const T* const planes = from + image * channels_ * pixels_ + pixel;
      for_channels([&](std::int64_t c, std::int64_t count) {
        fetch<0>(planes + (c + count) * pixels_, std::min(count, channels_ - c - count), pixels);
        transpose_block(planes + c * pixels_, pixels_, to + (image * pixels_ + pixel) * step + c, step, count, pixels);
      });
    });
  }

  /// to[n, c, i] = from[n, i, c]; pixels of `from` are `step` elements apart, images of `to` `image_step` if it is not
  /// 0. `done(image, pixel0, pixels)` is called after each block.
  template <class Done>
  void to_nchw(thread_pool& pool, const T* from, std::ptrdiff_t step, T* to, std::ptrdiff_t image_step,
               Done&& done) const {
    if (image_step == 0) image_step = channels_ * pixels_;
    run(pool, [&](std::int64_t image, std::int64_t pixel, std::int64_t pixels) {
      T* const planes = to + image * image_step + pixel;
      for_channels([&](std::int64_t c, std::int64_t count) {
        fetch<1>(planes + (c + count) * pixels_, std::min(count, channels_ - c - count), pixels);
        transpose_block(from + (image * pixels_ + pixel) * step + c, step, planes + c * pixels_, pixels_, pixels,
                        count);
      });
      done(image, pixel, pixels);
    });
  }

 private:
  template <class Body> void for_channels(Body&& body) const {
    constexpr std::int64_t most = native_lanes<T>;
    for (std::int64_t c = 0; c < channels_; c += most) body(c, std::min(most, channels_ - c));
  }

  // Short runs of many channels escape the hardware prefetcher: prefetches the next ones.
  template <int Write> void fetch(const T* at, std::int64_t rows, std::int64_t count) const {
    constexpr std::int64_t line = 64 / sizeof(T);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < count; i += line) __builtin_prefetch(at + r * pixels_ + i, Write, 3);
  }

  template <class Body> void run(thread_pool& pool, Body&& body) const {
    constexpr std::int64_t block_elements = 16384;  // both sides of a block stay in L2
    const std::int64_t least = 2 * native_lanes<T>;
    const std::int64_t each = std::max(least, round_up(block_elements / std::max<std::int64_t>(channels_, 1), least));
    const std::int64_t blocks = ceil_div(pixels_, each);
    pool.parallel_for(batch_ * blocks, [&](std::int64_t task, unsigned) {
      const std::int64_t pixel = task % blocks * each;
      body(task / blocks, pixel, std::min(each, pixels_ - pixel));
    });
  }

  std::int64_t batch_, channels_, pixels_;
};

}  // namespace kiln::kernels
