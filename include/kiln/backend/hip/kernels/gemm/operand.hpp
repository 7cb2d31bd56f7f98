#pragma once
#include "kiln/backend/hip/kernels/gemm/arguments.hpp"
#include "kiln/backend/hip/kernels/platform/platform.hpp"

namespace kiln::gpu {

/// Elements of a tile in shared memory of `Rows` rows and `Depth` depths, the latter contiguous or the rows.
template <class T, bool DepthContiguous, int Rows, int Depth> struct tile_layout {
  static constexpr int step = tile_step(DepthContiguous, Rows, Depth, sizeof(T));
  static constexpr int elements = tile_elements(DepthContiguous, Rows, Depth, sizeof(T));
  /// Of an element on line `across`, at `along` in it.
  static KILN_FN int offset(int across, int along) { return across * step + along; }
};

/// A piece of a copy to shared memory: `valid` of its elements exist, the others become zeros. With a null `to` nothing
/// is copied.
template <class T> struct piece {
  T* to;
  const T* from;
  int valid;
};

/// Copies a thread's pieces of `Vector` elements: place(0) to place(Each - 1), `Whole` where all of them exist.
/// Elements too small for an asynchronous copy pass through registers; all are read before the first is stored, so that
/// their latencies overlap.
template <int Vector, int Each, class T, bool Whole = false, class Place> KILN_FN void copy_pieces(Place place) {
  constexpr int bytes = Vector * static_cast<int>(sizeof(T));
  if constexpr (bytes >= 4 && bytes <= 16 && (bytes & (bytes - 1)) == 0) {
    KILN_UNROLL
    for (int j = 0; j < Each; ++j) {
      const piece<T> p = place(j);
      if constexpr (Whole)
        copy_async<bytes>(p.to, p.from);
      else if (p.to)
        copy_async<bytes>(p.to, p.from, p.valid * static_cast<int>(sizeof(T)));
    }
  } else {
    static_assert(Vector == 1);
    T* to[Each];
    T kept[Each];
    KILN_UNROLL
    for (int j = 0; j < Each; ++j) {
      const piece<T> p = place(j);
      to[j] = p.to;
      kept[j] = p.to && p.valid > 0 ? *p.from : T{};
    }
    KILN_UNROLL
    for (int j = 0; j < Each; ++j)
      if (to[j]) *to[j] = kept[j];
  }
}

KILN_FN int clamp_count(int n, int most) { return n < 0 ? 0 : n < most ? n : most; }

/// How the threads of a block divide a tile into chunks of `Vector` elements: a thread copies `each` of them, the next
/// one `apart` rows or depths from the one before.
template <bool DepthContiguous, int Vector, int Rows, int Depth, int Threads> struct tile_chunks {
  static constexpr int line = (DepthContiguous ? Depth : Rows) / Vector;
  static constexpr int count = Rows * Depth / Vector, each = (count + Threads - 1) / Threads, apart = Threads / line;
  static constexpr bool even = count % Threads == 0;
  static_assert(Threads % line == 0 && (even || count < Threads));
  /// This thread's first chunk: along its line, and which line.
  static KILN_FN int along() { return thread_index() % line * Vector; }
  static KILN_FN int across() { return thread_index() / line; }
  /// Whether this thread has chunks.
  static KILN_FN bool any() { return even || thread_index() < count; }
};

/// A factor of a GEMM as a matrix. With Vector above 1 the contiguous step is 1, and the base and all other steps are
/// multiples of Vector.
template <class T, bool DepthContiguous, int Vector> struct matrix_operand : matrix_argument<T> {
  using element = T;
  static constexpr bool depth_contiguous = DepthContiguous, of_image = false;

  /// Where one thread copies from, tile after tile along the depth.
  template <int Rows, int Depth, int Threads, class Layout = tile_layout<T, DepthContiguous, Rows, Depth>>
  struct cursor {
    using chunks = tile_chunks<DepthContiguous, Vector, Rows, Depth, Threads>;
    using layout = Layout;
    static constexpr int each = chunks::each, apart = chunks::apart;
    const T *base, *from;
    i64 advance, stride;          // from tile to tile, from chunk to chunk
    int along_left, across_left;  // elements from this thread's first to the ends of rows and depths
    int at;

    KILN_FN cursor(const matrix_operand& m, int b0, int b1, int row0, int rows, int depth0, int depths) {
      const int along = chunks::along(), across = chunks::across();
      const int r = row0 + (DepthContiguous ? across : along), k = depth0 + (DepthContiguous ? along : across);
      base = m.base + b0 * m.batch[0] + b1 * m.batch[1];
      from = base + r * m.row_step + k * m.depth_step;
      advance = Depth * m.depth_step;
      stride = apart * (DepthContiguous ? m.row_step : m.depth_step);
      along_left = DepthContiguous ? depths - k : rows - r;
      across_left = DepthContiguous ? rows - r : depths - k;
      at = layout::offset(across, along);
    }
    /// The next tile, `Whole` where all of it exists.
    template <bool Whole = false> KILN_FN void copy(T* tile) {
      const int n = Whole ? Vector : clamp_count(along_left, Vector);
      if (chunks::any())
        copy_pieces<Vector, each, T, Whole>([&](int j) {
          const int valid = Whole || j * apart < across_left ? n : 0;
          return piece<T>{tile + at + j * apart * layout::step, valid > 0 ? from + j * stride : base, valid};
        });
      from += advance;
      (DepthContiguous ? along_left : across_left) -= Depth;
    }
    /// Prefetches the next `count` tiles.
    KILN_FN void expect(int count) const {
      constexpr int line_bytes = 128;
      if (chunks::along() * static_cast<int>(sizeof(T)) % line_bytes != 0) return;
      KILN_NO_UNROLL
      for (int i = 0; i < count; ++i) KILN_UNROLL
      for (int j = 0; j < each; ++j) {
        const int gone = i * Depth, along = along_left - (DepthContiguous ? gone : 0);
        if (along > 0 && j * apart < across_left - (DepthContiguous ? 0 : gone))
          prefetch(from + i * advance + j * stride);
      }
    }
  };
};

}  // namespace kiln::gpu
