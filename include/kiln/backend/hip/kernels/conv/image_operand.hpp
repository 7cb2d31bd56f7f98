#pragma once
#include "kiln/backend/hip/kernels/conv/arguments.hpp"
#include "kiln/backend/hip/kernels/gemm/operand.hpp"

namespace kiln::gpu {

/// How a position of a convolution's result maps to positions of its image: over two spatial dims, or three where the
/// kernel has planes. In a transposed convolution (`Backwards`) a tap reads an element where the stride divides.
template <int KernelPlanes, bool Backwards, int StridePlanes, int StrideRows, int StrideCols> struct image_places {
  static constexpr int kernel_planes = KernelPlanes;
  static constexpr bool backwards = Backwards;
  static constexpr int stride_planes = StridePlanes, stride_rows = StrideRows, stride_cols = StrideCols;
};
using plain_places = image_places<0, false, 1, 1, 1>;

/// The image of a convolution as the left factor of a GEMM: im2col that is never stored. Row i is an output pixel,
/// counted through all images of the batch, depth k a channel under a tap of the kernel. With `ChannelsFirst` the depth
/// counts channels within taps and `Vector` contiguous channels move at once; without it, taps within channels, the
/// order of ONNX weights. The second batch index counts groups. Channels and the kernel's extents are constants: a
/// depth is divided by them.
template <class T, bool DepthContiguous, bool ChannelsFirst, int Vector, int Channels, int KernelRows, int KernelCols,
          class Places = plain_places>
struct image_operand : image_argument<T> {
  using element = T;
  static constexpr bool depth_contiguous = DepthContiguous, volume = Places::kernel_planes != 0;
  static_assert(Vector == 1 || (DepthContiguous && ChannelsFirst));

  /// Where a depth reads: offset from the window's corner.
  struct tap {
    int channel, plane, row, col;
  };
  KILN_FN tap at_depth(int k) const {
    constexpr int plane = KernelRows * KernelCols, taps = plane * (volume ? Places::kernel_planes : 1);
    const int which = ChannelsFirst ? k / Channels : k % taps, in_plane = volume ? which % plane : which;
    return {ChannelsFirst ? k % Channels : k / taps, volume ? which / plane : 0, in_plane / KernelCols,
            in_plane % KernelCols};
  }
  /// The place along a dim that a tap meets, outside the extent where it meets none.
  template <int Stride> KILN_FN static int met(int corner, int tap, int dilation) {
    if constexpr (!Places::backwards) return corner + tap * dilation;
    const int reached = corner - tap * dilation;
    return reached >= 0 && reached % Stride == 0 ? reached / Stride : -1;
  }
  /// The window's corner at a place of the result.
  KILN_FN static int corner_of(int place, int stride, int pad) {
    return Places::backwards ? place + pad : place * stride - pad;
  }

  template <int Rows, int Depth, int Threads, class Layout = tile_layout<T, DepthContiguous, Rows, Depth>>
  struct cursor {
    using chunks = tile_chunks<DepthContiguous, Vector, Rows, Depth, Threads>;
    using layout = Layout;
    static constexpr int pixels = DepthContiguous ? chunks::each : 1;  // distinct pixels of one thread
    const image_operand& m;
    const T* corner[pixels];
    int top[pixels], left[pixels];  // of the window; far outside the image where the pixel does not exist
    int front[volume ? pixels : 1];
    int at, depth, depths;
    tap now;  // of the thread's one depth, where depth is contiguous

    KILN_FN cursor(const image_operand& m, int, int b1, int row0, int rows, int depth0, int depths)
        : m(m), depths(depths) {
      const int along = chunks::along(), across = chunks::across();
      at = layout::offset(across, along);
      depth = depth0 + (DepthContiguous ? along : across);
      now = m.at_depth(depth);
      KILN_UNROLL
      for (int j = 0; j < pixels; ++j) {
        const int r = row0 + (DepthContiguous ? across + j * chunks::apart : along);
        const int image = r / m.out_pixels, pixel = r % m.out_pixels;
        const int row = volume ? pixel / m.out_cols % m.out_rows : pixel / m.out_cols;
        top[j] = r < rows ? corner_of(row, m.stride_rows, m.pad_rows) : -(1 << 29);
        left[j] = corner_of(pixel % m.out_cols, m.stride_cols, m.pad_cols);
        if constexpr (volume) front[j] = corner_of(pixel / (m.out_cols * m.out_rows), m.stride_planes, m.pad_planes);
        corner[j] = m.base + b1 * m.group_step + (r < rows ? image * m.image_step : 0);
      }
    }
    KILN_FN piece<T> piece_at(T* to, int p, const tap& k, bool exists) const {
      const int row = met<Places::stride_rows>(top[p], k.row, m.dilation_rows),
                col = met<Places::stride_cols>(left[p], k.col, m.dilation_cols);
      bool inside = exists && static_cast<u32>(row) < static_cast<u32>(m.height) &&
                    static_cast<u32>(col) < static_cast<u32>(m.width);
      i64 ahead = 0;
      if constexpr (volume) {
        const int plane = met<Places::stride_planes>(front[p], k.plane, m.dilation_planes);
        inside = inside && static_cast<u32>(plane) < static_cast<u32>(m.planes);
        ahead = plane * m.plane_step;
      }
      const T* from =
          inside ? corner[p] + row * m.row_step + col * m.col_step + k.channel * m.channel_step + ahead : m.base;
      return {to, from, inside ? Vector : 0};
    }
    /// `Whole` changes nothing: windows reach past the image's edge.
    template <bool Whole = false> KILN_FN void copy(T* tile) {
      if (!chunks::any()) return;
      copy_pieces<Vector, chunks::each, T>([&](int j) {
        T* to = tile + at + j * chunks::apart * layout::step;
        if constexpr (DepthContiguous) {
          return piece_at(to, j, now, depth < depths);
        } else {
          const int k = depth + j * chunks::apart;
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
            if (volume && now.row == KernelRows) now.row = 0, ++now.plane;
          }
        } else {
          now = m.at_depth(depth);
        }
      }
    }
  };
};

}  // namespace kiln::gpu
