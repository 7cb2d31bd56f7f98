#pragma once
#include "kiln/backend/hip/kernels/platform/storage_types.hpp"

// What the kernel of a GEMM is passed and how a block of it divides shared memory. Host and device include this header:
// the host fills these structs, with T = void where only the kernel's text knows the type, and the device reads them.

namespace kiln::gpu {

/// A factor of a GEMM as a matrix in device memory: row i (a row of the left factor, a column of the right one) at
/// depth k of batch entry (b0, b1) is base[b0 * batch[0] + b1 * batch[1] + i * row_step + k * depth_step].
template <class T> struct matrix_argument {
  const T* base;
  i64 batch[2];
  i64 row_step, depth_step;
};

/// A tensor over the positions of a GEMM's result, with a step (of elements) along each of the four; 0 repeats.
struct epilogue_operand {
  const void* base;
  i64 step[4];
};

/// The result of a GEMM: a step along each of the four dims of a position. `pixels` is 0, or the pixels of an image
/// where rows count the pixels of all images of a batch.
template <class T> struct result_argument {
  T* base;
  i64 step[4];
  int pixels;
};

/// The result of phases of a transposed convolution: the lines of a phase begin at multiples of `step[0]`, from image
/// to image, plane to plane and row to row so many of them.
template <class T> struct phase_argument : result_argument<T> {
  i64 plane_step, row_step;  ///< of the whole result
  int lines, planes;         ///< rows of a phase, and its planes
  int image_lines, plane_lines, row_lines;
  int channels;                        ///< of a group of the image
  int all_planes, all_rows, all_cols;  ///< of the whole result
};

/// Sizes of a GEMM and of its division among blocks.
struct gemm_sizes {
  int rows, cols, depth;
  int tiles_m, tiles_n;
  int inner_batch;  ///< extent of the second batch index
  int splits;       ///< blocks that share one tile, each a range of the depth
  void* partial;    ///< splits > 1: their sums, splits * tiles * threads * sums of a thread
  int* arrivals;    ///< splits > 1: one counter a tile, zero before and after
  int entries = 0;  ///< of the batch, without tiles: `tiles_m` are then the threads of an entry
};

// The host's and the device's compilers pad alike.
static_assert(sizeof(matrix_argument<void>) == 40 && sizeof(epilogue_operand) == 40 &&
              sizeof(result_argument<void>) == 48 && sizeof(phase_argument<void>) == 104);
static_assert(sizeof(gemm_sizes) == 56);

/// Elements by which a row of a tile in shared memory is longer than it needs: 16 bytes, so that eight rows a tile's
/// depth apart start in different banks.
constexpr int tile_pad(int element_bytes) { return 16 / element_bytes; }
/// Elements from row to row of such a tile, or from depth to depth where rows are contiguous.
constexpr int tile_step(bool depth_contiguous, int rows, int depth, int element_bytes) {
  return (depth_contiguous ? depth : rows) + tile_pad(element_bytes);
}
constexpr int tile_elements(bool depth_contiguous, int rows, int depth, int element_bytes) {
  return (depth_contiguous ? rows : depth) * tile_step(depth_contiguous, rows, depth, element_bytes);
}
/// Elements from row to row where sums are staged on their way to the result.
constexpr int staging_step(int cols) { return cols + 4; }

/// The shared memory of a block: the tiles of some pipeline stages, and later the sums on their way to the result.
struct gemm_memory {
  int rows, cols, depth, warps_m, warps_n, stages;  ///< of the block's tile
  bool a_depth_contiguous, b_depth_contiguous;
  int element_bytes, sum_bytes, atom_rows;
  bool cluster;  ///< the whole tile's sums are staged, for the other blocks of a cluster

  constexpr int stage_bytes() const {
    return (tile_elements(a_depth_contiguous, rows, depth, element_bytes) +
            tile_elements(b_depth_contiguous, cols, depth, element_bytes)) *
           element_bytes;
  }
  constexpr int staging_bytes() const {
    return sum_bytes *
           (cluster ? rows * staging_step(cols) : warps_m * warps_n * atom_rows * staging_step(cols / warps_n));
  }
  constexpr int bytes() const {
    const int copies = stage_bytes() * stages, staging = staging_bytes();
    return copies > staging ? copies : staging;
  }
};

/// Constant weights as they are stored (stored_numbers.hpp): rows of numbers along the depth, and of what they are
/// scaled with. Without scales the last four say nothing.
struct stored_argument {
  const void* data;
  i64 row_bytes;
  const void *scales, *zeros;
  int scale_row, zero_row;  ///< elements from row to row
  int zero;
};
static_assert(sizeof(stored_argument) == 48);

/// Floats from row to row of a block's sums in `skinny_gemm`.
constexpr int few_rows_step(int cols) { return cols + 4; }

/// A tile of `gemm_on_wgmma`: two groups of four warps each sum 64 rows over depths of 64. Two of the stages are being
/// filled while one is multiplied; where there is a fourth, the one before still may be. A block of 256 columns has a
/// multiprocessor for itself; two of fewer share one, so that one multiplies while the other stores.
struct wgmma_tile {
  static constexpr int rows = 128, depth = 64, warps_m = 8, warps_n = 1;
  int cols;
  constexpr int stages() const { return cols == 128 ? 3 : 4; }
  constexpr int together() const { return cols == 256 ? 1 : 2; }
  constexpr int shared_bytes() const {
    const int copies = stages() * (rows + cols) * depth * 2, staging = rows * staging_step(cols) * 4;
    return copies > staging ? copies : staging;
  }
};

/// A tile of `gemm_persistent`: one warp has tiles copied, two more what the epilogue reads, and two groups of four sum
/// 64 rows each or, where they alternate, a tile each, over depths of 128 bytes. A block has a multiprocessor for
/// itself and works tile after tile; results leave in parts of 64 columns, through memory of their own: sums of 32
/// bits, or a ring of boxes of the result's elements for each group.
struct persistent_tile {
  static constexpr int rows = 128, warps_m = 12, warps_n = 1, copying = 4, part = 64;
  static constexpr int line_bytes = 128, box_bytes = 64 * part * 2;
  static constexpr int most_stages = 8, block_bytes = 227 * 1024, barrier_bytes = 512;  // of sm_90's shared memory
  int cols;
  bool alternate = false;
  int boxes = 0;  ///< of a group, where results leave through them
  /// Depths of a step.
  static constexpr int depth_of(int element_bytes) { return line_bytes / element_bytes; }
  /// Rows of the boxes in which the copy unit reads a factor of `count` rows that lie along the depth, for tiles of
  /// `across` of them: one box where no tile has a part without rows.
  static constexpr int lines_of_box(int count, int across) {
    return across <= 2 * part || (count + part - 1) / part * part % across == 0 ? across : part;
  }
  constexpr int stage_bytes() const { return (rows + cols) * line_bytes; }
  constexpr int leaving_bytes() const { return boxes != 0 ? 2 * boxes * box_bytes : rows * staging_step(part) * 4; }
  constexpr int stages() const {
    const int fit = (block_bytes - barrier_bytes - leaving_bytes()) / stage_bytes();
    return fit < most_stages ? fit : most_stages;
  }
  constexpr int leaving_at() const { return stages() * stage_bytes(); }
  constexpr int barriers_at() const { return leaving_at() + leaving_bytes(); }
  constexpr int barriers() const { return 2 * stages() + 2 + 4 * boxes; }
  constexpr int shared_bytes() const { return barriers_at() + barriers() * 8; }
};

/// What a block of `gemm_persistent` has the copy unit read and write: the factors, the result, and what the epilogue
/// reads in boxes.
struct persistent_maps {
  tensor_map a, b, result, operand;
};
static_assert(sizeof(persistent_maps) == 512);

}  // namespace kiln::gpu
