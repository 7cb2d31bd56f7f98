#pragma once
#include "kiln/backend/hip/kernels/platform/storage_types.hpp"

// What kernels of convolutions are passed; host and device include this header (see gemm/arguments.hpp).

namespace kiln::gpu {

/// An image as a factor of a GEMM (conv/image_operand.hpp). Steps count elements.
template <class T> struct image_argument {
  const T* base;
  i64 image_step, group_step, channel_step, plane_step, row_step, col_step;
  int planes, height, width;
  int out_rows, out_cols, out_pixels;
  int stride_planes, stride_rows, stride_cols, dilation_planes, dilation_rows, dilation_cols;
  int pad_planes, pad_rows, pad_cols;
};

/// Sizes of a convolution whose filters read a channel each.
struct depthwise_sizes {
  i64 image_step, channel_step, row_step, col_step;
  i64 work;  ///< threads that have something to do
  int channels, height, width, out_rows, out_cols;
  int stride_rows, dilation_rows, pad_rows, pad_cols;
};

/// Images whose channels are padded to a run, and whose lines with pixels that are 0 (conv/pad_channels.hpp).
struct channel_sizes {
  i64 image_step, channel_step, row_step, col_step;
  i64 pixels;  ///< of all padded images
  int height, width;
  int across, before;  ///< pixels of a padded line, and of these before the first that exists
};

static_assert(sizeof(image_argument<void>) == 120 && sizeof(depthwise_sizes) == 80);

}  // namespace kiln::gpu
