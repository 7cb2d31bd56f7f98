#pragma once
#include "kiln/backend/eigen/epilogue.hpp"
#include "kiln/backend/eigen/isa.hpp"
#include "kiln/graph/module.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln::eigen {

using kernels::conv_problem;

/// Extents of an image for the choice of method alone: unknown ones are taken as a batch of 1 and as 32.
inline ints sizes(const shape& s) {
  ints x;
  for (dimension d : s.lens) x.push_back(d.is_constant() ? d.raw() : x.size() < 1 ? 1 : 32);
  return x;
}

/// A convolution of images and weights of such extents.
inline conv_problem problem_of(const op::convolution& conv, const ints& x, const ints& w, bool near_weights) {
  conv_problem p;
  p.near_weights = near_weights;
  p.batch = x[0];
  p.in_channels = x[1];
  p.out_channels = w[0];
  p.groups = conv.group;
  const std::size_t axes = x.size() - 2;
  for (std::size_t d = 0; d < axes; ++d) {
    const std::size_t to = 3 - axes + d;
    p.input[to] = x[d + 2];
    p.kernel[to] = w[d + 2];
    if (!conv.stride.empty()) p.stride[to] = conv.stride[d];
    if (!conv.dilation.empty()) p.dilation[to] = conv.dilation[d];
    if (!conv.pads.empty()) {
      p.pad_begin[to] = conv.pads[d];
      p.pad_end[to] = conv.pads[axes + d];
    }
  }
  return p;
}

/// Dilated convolutions at stride 1 whose phases, as images of their own, are estimated to take less work.
std::unique_ptr<kernel> lower_dilated_convolution(const kernel_request& r);

/// `conv_epilogue::call` for the activation of a `fused_contraction` over pixels in NHWC.
inline void activate_pixels(void* self, std::int64_t, std::int64_t, std::int64_t channels, std::int64_t,
                            std::int64_t pixels, float* c, std::ptrdiff_t c_row) {
  static_cast<const fused_contraction*>(self)->apply_activation(pixels, channels, c, c_row);
}

}  // namespace kiln::eigen
