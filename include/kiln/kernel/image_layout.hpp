#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kiln/kernel/gemm_pack.hpp"

namespace kiln::kernels {

/// Where planes begin that lie apart, each of them contiguous: every `each` channels are a run of their own.
struct plane_steps {
  std::int64_t each = 1;
  std::ptrdiff_t image = 0, run = 0, channel = 0;  ///< elements from one to the next

  static constexpr plane_steps row_major(std::int64_t channels, std::int64_t pixels) {
    return {std::max<std::int64_t>(channels, 1), channels * pixels, 0, pixels};
  }
  constexpr std::ptrdiff_t at(std::int64_t of_image, std::int64_t of_channel) const {
    const std::int64_t runs = of_channel < each ? 0 : quotient(of_channel, each);
    return of_image * image + runs * run + (of_channel - runs * each) * channel;
  }
  friend constexpr bool operator==(const plane_steps&, const plane_steps&) = default;
};

/// Where a batch of images lies: by planes ([batch, channels, pixels], row-major unless `planes` says otherwise), or
/// channels last, where channel c of pixel i of image n is element `(n * pixels + i) * step + c` and a step is at least
/// the number of channels.
struct image_layout {
  bool channels_last = false;
  std::ptrdiff_t step = 0;  ///< elements from pixel to pixel, channels last
  std::optional<plane_steps> planes = {};

  friend constexpr bool operator==(const image_layout&, const image_layout&) = default;
};

/// Copies images between the two layouts; `Last` says where channels are last.
template <class T>
class image_conversion {
 public:
  image_conversion(std::int64_t batch, std::int64_t channels, std::int64_t pixels)
      : batch_(batch), channels_(channels), pixels_(pixels) {}

  /// to[n, i, c] (channels last, `step` apart) = from[n, c, i].
  void to_channels_last(thread_pool& pool, const T* from, T* to, std::ptrdiff_t step) const {
    run(pool, [&](std::int64_t image, std::int64_t pixel, std::int64_t pixels) {
      const T* const planes = from + image * channels_ * pixels_ + pixel;
      for_channels([&](std::int64_t c, std::int64_t count) {
        fetch<0>(planes + (c + count) * pixels_, std::min(count, channels_ - c - count), pixels);
        transpose_block(planes + c * pixels_, pixels_, to + (image * pixels_ + pixel) * step + c, step, count, pixels);
      });
    });
  }

  /// to[n, c, i] = from[n, i, c] (channels last, `step` apart), images `image_step` apart where it is not 0;
  /// `done(image, pixel0, pixels)` follows each block.
  template <class Done>
  void to_planes(thread_pool& pool, const T* from, std::ptrdiff_t step, T* to, std::ptrdiff_t image_step,
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
  template <class Body>
  void for_channels(Body&& body) const {
    constexpr std::int64_t most = native_lanes<T>;
    for (std::int64_t c = 0; c < channels_; c += most) body(c, std::min(most, channels_ - c));
  }

  // Short runs of many planes are no stream that the processor sees: the next ones are asked for meanwhile.
  template <int Write>
  void fetch(const T* at, std::int64_t rows, std::int64_t count) const {
    constexpr std::int64_t line = 64 / sizeof(T);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < count; i += line) __builtin_prefetch(at + r * pixels_ + i, Write, 3);
  }

  template <class Body>
  void run(thread_pool& pool, Body&& body) const {
    constexpr std::int64_t block_elements = 16384;  // both sides of a block stay in the second-level cache
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
