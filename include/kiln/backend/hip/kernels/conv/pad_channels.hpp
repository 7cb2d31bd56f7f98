#pragma once
#include "kiln/backend/hip/kernels/conv/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/platform.hpp"

namespace kiln::gpu {

/// Pixel `at` of padded images, of `Channels` channels in any layout, as `Run` channels one after the other: those past
/// the last are 0, and so are pixels before and past a line's.
template <int Channels, int Run, class T>
KILN_FN void pad_channels(T* to, const T* from, const channel_sizes& n, i64 at) {
  static_assert(Channels <= Run);
  if (at >= n.pixels) return;
  const int across = n.across, height = n.height;
  const i64 line = at / across, image = line / height;
  const int col = static_cast<int>(at - line * across) - n.before;
  pack<T, Run> all{};
  if (static_cast<u32>(col) < static_cast<u32>(n.width)) {
    from += image * n.image_step + (line - image * height) * n.row_step + col * n.col_step;
    KILN_UNROLL
    for (int c = 0; c < Channels; ++c) all.at[c] = from[c * n.channel_step];
  }
  *reinterpret_cast<pack<T, Run>*>(to + at * Run) = all;
}

}  // namespace kiln::gpu
