#pragma once
#include <algorithm>

#include "kiln/backend/hip/kernels/conv/arguments.hpp"

namespace kiln::hip {

/// Columns of an image that a thread of `grouped_convolution` holds in registers.
inline constexpr int most_held_columns = 24;

/// Chooses a thread's outputs, `most` or, of a transposed convolution, about as many, and the taps of a row that it
/// holds operands for, so that these fit in its registers; whether they do. Where not, the tile is none.
inline bool hold_columns(gpu::grouped_tile& t, int most) {
  constexpr int most_part = 11, most_stride = 8;
  if (t.backwards) {
    t.part = t.cols;
    t.outputs = t.stride_cols * std::max(1, most / t.stride_cols);
    return t.stride_cols <= most_stride && t.reach() <= most_held_columns && t.cols <= 2 * most_part;
  }
  for (t.outputs = most; t.outputs >= 1; t.outputs /= 2)
    for (int parts = (t.cols + most_part - 1) / most_part; parts <= t.cols; ++parts) {
      t.part = (t.cols + parts - 1) / parts;
      // columns between the taps of one output are held for nothing
      if (t.reach() <= most_held_columns && t.reach() <= 3 * (t.outputs + t.part)) return true;
    }
  return false;
}

/// The same with `most` outputs, a power of two, or with half as many until they are held and `enough(outputs)` says
/// that there are enough threads then. For windows of which one output's columns are held: these are what is left.
template <class Enough> void hold_most_columns(gpu::grouped_tile& t, int most, Enough enough) {
  while (most > 1 && (!hold_columns(t, most) || !enough(t.outputs))) most /= 2;
  hold_columns(t, most);
}

}  // namespace kiln::hip
