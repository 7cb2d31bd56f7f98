#pragma once
#include "kiln/backend/hip/kernels/platform/storage_types.hpp"

// What kernels of convolutions are passed; host and device include this header (see gemm/arguments.hpp).

namespace kiln::gpu {

/// An image as a factor of a GEMM (conv/image_operand.hpp). Steps count elements.
template <class T> struct image_argument {
  const T* base;
  i64 image_step, group_step, channel_step, plane_step, row_step, col_step;
  i64 images;  ///< where phases are divided
  int planes, height, width;
  int out_rows, out_cols, out_pixels;
  int stride_planes, stride_rows, stride_cols, dilation_planes, dilation_rows, dilation_cols;
  int pad_planes, pad_rows, pad_cols;
  int tap_planes, tap_rows, tap_cols;  ///< of a phase (conv/phases.hpp)
};

/// A dim of a transposed convolution whose places part into phases: those a stride apart read the same taps, every
/// stride-th. A phase's number is its first tap.
struct phase_dim {
  int stride = 1, taps = 1, pad = 0;
  /// The phase's first place, and how many it has of so many.
  constexpr int first(int number) const {
    const int from = number - pad % stride;
    return from < 0 ? from + stride : from;
  }
  constexpr int count(int number, int places) const {
    return first(number) < places ? (places - first(number) + stride - 1) / stride : 0;
  }
  /// Its taps, and those of the phases before.
  constexpr int taps_of(int number) const { return number < taps ? (taps - number + stride - 1) / stride : 0; }
  constexpr int taps_before(int number) const {
    const int more = taps % stride;
    return taps / stride * number + (number < more ? number : more);
  }
  /// The padding of a phase's convolution.
  constexpr int pad_of(int number) const { return (first(number) + pad - number) / stride; }
  /// Whether phases have as many taps each.
  constexpr bool even() const { return taps % stride == 0; }
};
struct phase_shape {
  phase_dim planes, rows, cols;
  /// The most phases that are worked apart: more have fewer taps each than they cost.
  static constexpr i64 most = 1024;
  /// Whether there are several, and no more than that. Strides are less than 2^16.
  constexpr bool parts() const {
    const i64 lines = i64(planes.stride) * rows.stride;
    return lines <= most && lines * cols.stride > 1 && lines * cols.stride <= most;
  }
  constexpr int phases() const { return planes.stride * rows.stride * cols.stride; }
  constexpr int taps() const { return planes.taps * rows.taps * cols.taps; }
  constexpr bool even() const { return planes.even() && rows.even() && cols.even(); }
  /// Of the phase with this number, whose cols count first.
  struct numbers {
    int planes, rows, cols;
  };
  constexpr numbers of(int number) const {
    return {number / (rows.stride * cols.stride), number / cols.stride % rows.stride, number % cols.stride};
  }
  constexpr int taps_of(const numbers& n) const {
    return planes.taps_of(n.planes) * rows.taps_of(n.rows) * cols.taps_of(n.cols);
  }
  /// Taps of the phases before, whose weights come first.
  constexpr int taps_before(const numbers& n) const {
    return planes.taps_before(n.planes) * rows.taps * cols.taps +
           planes.taps_of(n.planes) *
               (rows.taps_before(n.rows) * cols.taps + rows.taps_of(n.rows) * cols.taps_before(n.cols));
  }
  /// Places of a result of so many planes, rows and columns.
  struct extents {
    int planes, rows, cols;
  };
  constexpr extents places_of(const numbers& n, const extents& of) const {
    return {planes.count(n.planes, of.planes), rows.count(n.rows, of.rows), cols.count(n.cols, of.cols)};
  }
};

/// What the text of a convolution of few channels a group has: how a thread works, and the window. A transposed one
/// (`backwards`) reads what a tap meets where the stride divides.
struct grouped_tile {
  int run = 1;                 ///< neighboring channels of a thread, where filters read one channel each
  int outputs = 1;             ///< neighbors of a row that a thread makes; of a transposed one a multiple of the stride
  bool last = false;           ///< neighboring threads work neighboring filters, else neighboring places of a row
  int depth = 1, filters = 1;  ///< of a group: channels, and filters
  int planes = 1, rows = 1, cols = 1;  ///< taps
  int part = 1;                        ///< taps of a row whose operands a thread holds at a time
  int stride_planes = 1, stride_rows = 1, stride_cols = 1;
  int dilation_planes = 1, dilation_rows = 1, dilation_cols = 1;
  int pad_planes = 0, pad_rows = 0, pad_cols = 0;
  bool backwards = false;

  /// The place along a dim that a tap meets, negative where it meets none; `corner` is that of the window.
  constexpr int corner(int place, int stride, int pad) const { return backwards ? place + pad : place * stride - pad; }
  constexpr int met(int corner, int tap, int stride, int dilation) const {
    if (!backwards) return corner + tap * dilation;
    const int reached = corner - tap * dilation;
    return reached >= 0 && reached % stride == 0 ? reached / stride : -1;
  }
  /// Columns that a thread holds count from `left` of its first place (and of tap 0) on.
  constexpr int left(int place) const {
    return backwards ? place / stride_cols + lowest() : place * stride_cols - pad_cols;
  }
  /// Which of these tap `tap` meets for output `o`, negative where it meets none.
  constexpr int held(int o, int tap) const {
    if (!backwards) return o * stride_cols + tap * dilation_cols;
    const int reached = o + pad_cols - tap * dilation_cols - lowest() * stride_cols;
    return reached % stride_cols == 0 ? reached / stride_cols : -1;
  }
  /// How many columns a thread holds for the taps of a part.
  constexpr int reach() const {
    return (backwards ? held_at_most() : (outputs - 1) * stride_cols + (part - 1) * dilation_cols) + 1;
  }

 private:
  // the lowest column that a tap of a transposed convolution may meet for a place that the stride divides
  constexpr int lowest() const {
    const int least = pad_cols - (cols - 1) * dilation_cols;
    return least >= 0 ? least / stride_cols : -((-least + stride_cols - 1) / stride_cols);
  }
  constexpr int held_at_most() const { return (outputs - 1 + pad_cols - lowest() * stride_cols) / stride_cols; }
};
/// Sizes of such a convolution. Steps count elements.
struct grouped_sizes {
  i64 image_step, channel_step, plane_step, row_step, col_step;
  i64 work;  ///< threads that have something to do
  int filters, planes, height, width, out_planes, out_rows, out_cols;
};

/// Images whose channels are padded to a run, and whose lines with pixels that are 0 (conv/pad_channels.hpp).
struct channel_sizes {
  i64 image_step, channel_step, row_step, col_step;
  i64 pixels;  ///< of all padded images
  int height, width;
  int across, before;  ///< pixels of a padded line, and of these before the first that exists
};

static_assert(sizeof(image_argument<void>) == 136 && sizeof(grouped_sizes) == 80);

}  // namespace kiln::gpu
