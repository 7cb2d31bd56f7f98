#pragma once
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/kernel/sample/taps.hpp"
#include "kiln/runtime/kernel.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {

/// x[n, c, pixels] and y[n', c, results] with their channels side by side, where that pays: copies in scratch. Reading
/// single elements of few channels, or of a few places in large images, takes less than a copy.
class channels_last {
 public:
  /// `reads` are taps of all results of one channel.
  channels_last(std::int64_t images, std::int64_t channels, std::int64_t pixels, std::int64_t made_images,
                std::int64_t results, std::int64_t reads)
      : images_(images),
        channels_(channels),
        pixels_(pixels),
        made_images_(made_images),
        results_(results),
        copies_(channels >= 3 && 4 * reads >= images * pixels + made_images * results) {}

  /// Whether there are copies.
  bool copies() const { return copies_; }

  /// Of scratch for both copies of f32, if there are any.
  static std::size_t bytes(const tensor& x, const tensor& y) {
    return 4 * static_cast<std::size_t>(x.elements() + y.elements() + 32);
  }
  /// The operand, of image 0; results go to a copy, too.
  const float* begin(thread_pool& pool, const float* x, float* y, float* scratch) {
    made_ = y, written_ = y;
    if (!copies_) return x;
    written_ = scratch + (images_ * channels_ * pixels_ + 15) / 16 * 16;
    kiln_eigen_isa()->convert_images(pool, images_, channels_, pixels_, x, {}, scratch, {true, channels_});
    return scratch;
  }
  /// Copies results to their place.
  void end(thread_pool& pool) const {
    if (copies_)
      kiln_eigen_isa()->convert_images(pool, made_images_, channels_, results_, written_, {true, channels_}, made_, {});
  }
  /// Has a problem begin at result `first` of an image.
  void place(kernels::tap_problem<float>& p, const float* x, std::int64_t image, std::int64_t made,
             std::int64_t first) const {
    p.channels = channels_;
    p.x = x + image * channels_ * pixels_;
    p.y = written_ + made * channels_ * results_ + first * (copies_ ? channels_ : 1);
    p.x_plane = copies_ ? 0 : pixels_, p.y_plane = results_;
  }

 private:
  std::int64_t images_, channels_, pixels_, made_images_, results_;
  bool copies_;
  float *made_ = nullptr, *written_ = nullptr;
};

/// Whether places in images of this shape are counted in i32.
inline bool fits_in_i32(const shape& s) {
  for (const dimension d : s.lens)
    if (d.is_constant() && d.value() > (1 << 24)) return false;
  return true;
}

}  // namespace kiln::eigen
