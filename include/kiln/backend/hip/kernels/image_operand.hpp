#pragma once
#include "kiln/backend/hip/kernels/operand.hpp"

namespace kiln::device {

/// The image side of a convolution as the left factor of a product, never stored as one: row i is an output pixel,
/// counted through all images of the batch, depth k a channel under a tap of the kernel. With `ChannelsFirst` the depth
/// counts channels within taps and `Vector` contiguous channels move at once; without it, taps within channels, as ONNX
/// weights lie. The second batch index counts groups. Channels and the kernel's extents are constants: a depth is
/// divided by them.
template <class T, bool DepthContiguous, bool ChannelsFirst, int Vector, int Channels, int KernelRows, int KernelCols>
struct image_operand {
  using element = T;
  static constexpr bool depth_contiguous = DepthContiguous;
  static_assert(Vector == 1 || (DepthContiguous && ChannelsFirst));
  const T* base;
  i64 image_step, group_step, channel_step, row_step, col_step;
  int height, width;
  int out_cols, out_pixels;
  int stride_rows, stride_cols, dilation_rows, dilation_cols, pad_rows, pad_cols;

  /// Where a depth reads: offset from the window's corner.
  struct tap {
    int channel, row, col;
  };
  KILN_FN tap at_depth(int k) const {
    constexpr int taps = KernelRows * KernelCols;
    const int which = ChannelsFirst ? k / Channels : k % taps;
    return {ChannelsFirst ? k % Channels : k / taps, which / KernelCols, which % KernelCols};
  }

  template <int Rows, int Depth, int Threads, class Layout = tile_layout<T, DepthContiguous, Rows, Depth>>
  struct cursor {
    static constexpr int line = (DepthContiguous ? Depth : Rows) / Vector;
    static constexpr int chunks = Rows * Depth / Vector, each = (chunks + Threads - 1) / Threads;
    static_assert(Threads % line == 0 && (chunks % Threads == 0 || chunks < Threads));
    using layout = Layout;
    static constexpr int pixels = DepthContiguous ? each : 1;  // distinct pixels of one thread
    const image_operand& m;
    const T* corner[pixels];
    int top[pixels], left[pixels];  // of the window; far outside the image where the pixel does not exist
    int at, depth, depths;
    tap now;  // of the thread's one depth, where depth is contiguous

    KILN_FN cursor(const image_operand& m, int, int b1, int row0, int rows, int depth0, int depths)
        : m(m), depths(depths) {
      const int t = thread_index(), along = t % line * Vector, across = t / line;
      at = layout::offset(across, along);
      depth = depth0 + (DepthContiguous ? along : across);
      now = m.at_depth(depth);
      KILN_UNROLL
      for (int j = 0; j < pixels; ++j) {
        const int r = row0 + (DepthContiguous ? across + j * (Threads / line) : along);
        const int image = r / m.out_pixels, pixel = r % m.out_pixels;
        top[j] = r < rows ? pixel / m.out_cols * m.stride_rows - m.pad_rows : -(1 << 29);
        left[j] = pixel % m.out_cols * m.stride_cols - m.pad_cols;
        corner[j] = m.base + b1 * m.group_step + (r < rows ? image * m.image_step : 0);
      }
    }
    KILN_FN piece<T> piece_at(T* to, int p, const tap& k, bool exists) const {
      const int row = top[p] + k.row * m.dilation_rows, col = left[p] + k.col * m.dilation_cols;
      const bool inside = exists && static_cast<u32>(row) < static_cast<u32>(m.height) &&
                          static_cast<u32>(col) < static_cast<u32>(m.width);
      const T* from = inside ? corner[p] + row * m.row_step + col * m.col_step + k.channel * m.channel_step : m.base;
      return {to, from, inside ? Vector : 0};
    }
    /// `Whole` says nothing of the image's edge.
    template <bool Whole = false>
    KILN_FN void copy(T* tile) {
      if (chunks < Threads && thread_index() >= chunks) return;
      copy_pieces<Vector, each, T>([&](int j) {
        T* to = tile + at + j * (Threads / line) * layout::step;
        if constexpr (DepthContiguous) {
          return piece_at(to, j, now, depth < depths);
        } else {
          const int k = depth + j * (Threads / line);
          return piece_at(to, 0, m.at_depth(k), k < depths);
        }
      });
      depth += Depth;
      if constexpr (DepthContiguous) {
        if constexpr (ChannelsFirst) {
          now.channel += Depth;
          while (now.channel >= Channels) {
            now.channel -= Channels;
            if (++now.col == KernelCols) now.col = 0, ++now.row;
          }
        } else {
          now = m.at_depth(depth);
        }
      }
    }
  };
};

}  // namespace kiln::device
