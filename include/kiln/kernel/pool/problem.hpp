#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace kiln::kernels {

/// Pooling of `planes` planes [D, H, W] (fewer spatial dims are right-aligned, the leading ones are 1). Padding is
/// never a maximum; a mean divides by the elements inside, or, with `count_padding`, by those inside the padded extent.
struct pooling_problem {
  using extents = std::array<std::int64_t, 3>;
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t planes = 1;
  /// Planes of an image, and elements between the images of y where these are not adjacent; 0: they are.
  std::int64_t image_planes = 1;
  std::ptrdiff_t y_image = 0;
  extents input{1, 1, 1}, output{1, 1, 1}, window{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad_begin{}, pad_end{};
  bool average = false;
  bool count_padding = false;
  std::int64_t norm = 0;  ///< the order of the norm that windows become; 0: their mean or greatest element

  const float* plane_of_x(std::int64_t plane) const { return x + plane * input[0] * input[1] * input[2]; }
  float* plane_of_y(std::int64_t plane) const {
    const std::int64_t image = y_image == 0 ? 0 : plane / image_planes;
    return y + image * y_image + (plane - image * image_planes) * output[0] * output[1] * output[2];
  }
};

/// What one output's window covers along an axis: input positions [first, last) in steps, and how many a mean counts.
class pool_window {
 public:
  pool_window(const pooling_problem& p, std::size_t axis, std::int64_t at)
      : first(at * p.stride[axis] - p.pad_begin[axis]), step(p.dilation[axis]), start_(first) {
    const std::int64_t end = start_ + p.window[axis] * step;
    if (first < 0) first = step == 1 ? 0 : first + steps(-first) * step;
    last = std::min(end, p.input[axis]);
    padded_ = std::min(end, p.input[axis] + p.pad_end[axis]);
    counts_padding_ = p.count_padding;
  }

  std::int64_t first, last = 0, step;
  /// Elements that a mean divides by.
  std::int64_t counted() const {
    return counts_padding_ ? steps(padded_ - start_) : std::max<std::int64_t>(0, steps(last - first));
  }

 private:
  // a 64-bit division takes as long as pooling a few vectors
  std::int64_t steps(std::int64_t n) const { return step == 1 ? n : (n + step - 1) / step; }

  std::int64_t start_, padded_ = 0;
  bool counts_padding_ = false;
};

/// NHWC images to be pooled: adjacent pixels of x and y are `x_step` and `y_step` elements apart.
/// `pooling_problem::planes` is then batch * channels.
struct nhwc_pooling {
  std::int64_t batch = 1, channels = 1;
  std::ptrdiff_t x_step = 0, y_step = 0;
};

/// Local response normalization across channels: y = x / (bias + alpha / size * sum over a window of x^2)^beta for
/// x[batch, channels, pixels]; the window of channel c is [c - (size - 1) / 2, c + size / 2].
struct lrn_problem {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t batch = 1, channels = 1, pixels = 1, size = 1;
  float alpha = 1e-4f, beta = 0.75f, bias = 1;
  std::ptrdiff_t x_step = 0, y_step = 0;  ///< NHWC: elements between adjacent pixels; 0: NCHW
};

}  // namespace kiln::kernels
