#pragma once
#include "kiln/backend/hip/kernels/conv/arguments.hpp"
#include "kiln/backend/hip/kernels/gemm/operand.hpp"

namespace kiln::gpu {

/// How a position of a convolution's result maps to positions of its image: over two spatial dims, or three where the
/// kernel has planes. In a transposed convolution (`Backwards`) a tap reads an element where the stride divides. With
/// `Counted` the image says how many taps there are.
template <int KernelPlanes, bool Backwards, int StridePlanes, int StrideRows, int StrideCols, bool Counted = false>
struct image_places {
  static constexpr bool counted = Counted;
  static constexpr int kernel_planes = KernelPlanes;
  static constexpr bool backwards = Backwards;
  static constexpr int stride_planes = StridePlanes, stride_rows = StrideRows, stride_cols = StrideCols;
};
using plain_places = image_places<0, false, 1, 1, 1>;

/// The image of a convolution as the left factor of a GEMM: im2col that is never stored. Row i is an output pixel,
/// counted through all images of the batch, depth k a channel under a tap of the kernel. The depth counts `Together`
/// channels, then taps, then further channels: 1 is the order of ONNX weights, `Channels` has all channels of a tap
/// together. `Vector` contiguous channels move at once. The second batch index counts groups. Channels and the kernel's
/// extents are constants: a depth is divided by them.
template <class T, bool DepthContiguous, int Together, int Vector, int Channels, int KernelRows, int KernelCols,
          class Places = plain_places>
struct image_operand : image_argument<T> {
  using element = T;
  static constexpr int kernel_rows = KernelRows, kernel_cols = KernelCols;
  static constexpr bool backwards = Places::backwards;
  static constexpr bool depth_contiguous = DepthContiguous, of_image = true, volume = Places::kernel_planes != 0;
  static constexpr int plane_taps = KernelRows * KernelCols, taps = plane_taps * (volume ? Places::kernel_planes : 1);
  static constexpr bool counted = Places::counted;
  static_assert(Vector == 1 || (DepthContiguous && Together % Vector == 0));
  static_assert(!counted || Together == Channels);
  KILN_FN int planes_of_taps() const { return counted ? this->tap_planes : Places::kernel_planes; }
  KILN_FN int rows_of_taps() const { return counted ? this->tap_rows : KernelRows; }
  KILN_FN int cols_of_taps() const { return counted ? this->tap_cols : KernelCols; }
  /// Whether a tap is as far from the window's corner in memory for every window.
  static constexpr bool even =
      !Places::backwards || (Places::stride_planes == 1 && Places::stride_rows == 1 && Places::stride_cols == 1);

  /// Where a depth reads: offset from the window's corner.
  struct tap {
    int channel, plane, row, col;
  };
  KILN_FN tap at_depth(int k) const {
    const int each = counted ? rows_of_taps() * cols_of_taps() : plane_taps, across = cols_of_taps();
    const int which = counted ? k / Together : k / Together % taps, in_plane = volume ? which % each : which;
    return {counted ? k % Together : k / Together / taps * Together + k % Together, volume ? which / each : 0,
            in_plane / across, in_plane % across};
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
    const T* base;
    i64 corner[pixels];             // of the window: where it lies, or its image where taps are not even
    int top[pixels], left[pixels];  // far outside the image where the pixel does not exist
    int front[volume ? pixels : 1];
    int at, depth, depths;
    tap now;  // of the thread's one depth, where depth is contiguous

    KILN_FN cursor(const image_operand& m, int, int b1, int row0, int rows, int depth0, int depths)
        : m(m), base(m.base + b1 * m.group_step), depths(depths) {
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
        corner[j] = image * m.image_step;
        if constexpr (volume) front[j] = corner_of(pixel / (m.out_cols * m.out_rows), m.stride_planes, m.pad_planes);
        if constexpr (even) corner[j] += top[j] * m.row_step + left[j] * m.col_step;
        if constexpr (even && volume) corner[j] += front[j] * m.plane_step;
      }
    }
    /// Elements from an even window's corner to a tap.
    KILN_FN i64 offset_of_tap(const tap& k) const {
      i64 to = k.row * m.dilation_rows * m.row_step + k.col * m.dilation_cols * m.col_step;
      if constexpr (volume) to += k.plane * m.dilation_planes * m.plane_step;
      return (Places::backwards ? -to : to) + k.channel * m.channel_step;
    }
    /// Vector elements at a tap of pixel `p`; `ahead` is that of an even window.
    KILN_FN piece<T> piece_at(T* to, int p, const tap& k, i64 ahead, bool exists) const {
      const int row = met<Places::stride_rows>(top[p], k.row, m.dilation_rows),
                col = met<Places::stride_cols>(left[p], k.col, m.dilation_cols);
      bool inside = exists && static_cast<u32>(row) < static_cast<u32>(m.height) &&
                    static_cast<u32>(col) < static_cast<u32>(m.width);
      int plane = 0;
      if constexpr (volume) {
        plane = met<Places::stride_planes>(front[p], k.plane, m.dilation_planes);
        inside = inside && static_cast<u32>(plane) < static_cast<u32>(m.planes);
      }
      if constexpr (!even)
        ahead = row * m.row_step + col * m.col_step + plane * m.plane_step + k.channel * m.channel_step;
      return {to, inside ? base + (corner[p] + ahead) : m.base, inside ? Vector : 0};
    }
    /// `Whole` changes nothing: windows reach past the image's edge.
    template <bool Whole = false> KILN_FN void copy(T* tile) {
      if (!chunks::any()) return;
      const i64 ahead = even && DepthContiguous ? offset_of_tap(now) : 0;
      copy_pieces<Vector, chunks::each, T>([&](int j) {
        T* to = tile + at + j * chunks::apart * layout::step;
        if constexpr (DepthContiguous) {
          return piece_at(to, j, now, ahead, depth < depths);
        } else {
          const int k = depth + j * chunks::apart;
          const tap here = m.at_depth(k);
          return piece_at(to, 0, here, even ? offset_of_tap(here) : 0, k < depths);
        }
      });
      depth += Depth;
      if constexpr (!DepthContiguous) return;
      if constexpr (Together >= Depth)
        advance();
      else
        now = m.at_depth(depth);
    }
    // The tap of a depth `Depth` further on, of which a run of channels has as many at least.
    KILN_FN void advance() {
      now.channel += Depth;
      const int gone = Together == Depth ? Depth : now.channel % Together;
      if (Together != Depth && gone >= Depth) return;
      now.channel -= Together;
      if (++now.col < m.cols_of_taps()) return;
      now.col = 0;
      if (++now.row < m.rows_of_taps()) return;
      now.row = 0;
      if (volume && ++now.plane < m.planes_of_taps()) return;
      now.plane = 0;
      now.channel += Together;
    }
  };
};

}  // namespace kiln::gpu
