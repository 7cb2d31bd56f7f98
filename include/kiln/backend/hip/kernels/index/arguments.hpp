#pragma once
#include "kiln/backend/hip/kernels/platform/storage_types.hpp"

// Numbers that kernels of index ops and copies are passed; host and device include this header (see
// gemm/arguments.hpp).

namespace kiln::gpu {

/// Dims that such a kernel takes at most.
inline constexpr int index_dims = 24;

/// A copy between two layouts: extents and both layouts' steps, outermost first.
struct copy_sizes {
  static constexpr int dims = 8;
  i64 total;
  i64 lens[dims], from[dims], to[dims];
};

struct gather_sizes {
  i64 inner;  ///< elements after the axis
  i64 indices, extent;
};

/// Gathering and scattering by elements: of each dim its extent in the indices and its step in the data. The axis's
/// step is `axis_step`, and 0 among the others.
struct element_sizes {
  struct dim {
    i64 extent, step;
  };
  i64 axis_extent, axis_step;
  dim dims[index_dims];
};

/// Gathering and scattering by tuples of indices.
struct tuple_sizes {
  i64 slice;                ///< elements that a tuple names
  i64 rows;                 ///< tuples of a batch entry
  i64 extents[index_dims];  ///< of the dims that a tuple indexes
};

/// `mode`: 0 constant, 1 reflect, 2 edge, 3 wrap.
struct pad_sizes {
  struct dim {
    i64 out, in, cropped, kept, added;  ///< extents, then elements cropped before, kept, and added before
  };
  i64 mode;
  dim dims[index_dims];
};

struct tri_sizes {
  i64 rows, cols, k, upper;
};

struct fill_value {
  i64 bits;
};

/// Elements among which some are selected: all of them, tiles, and extents.
inline constexpr int select_tile = 2048;  ///< elements
struct select_sizes {
  i64 total, tiles;
  i64 lens[index_dims];
};
/// What a range's count says where there is none, and the most elements.
inline constexpr i64 range_without_step = -1, range_without_end = -2, most_of_range = i64(1) << 46;
/// Boxes of a batch among which each class keeps some.
struct box_sizes {
  i64 batches, classes, boxes;
  i64 tiles;  ///< classes of all batches
};
struct random_sizes {
  i64 count, seed;
  double low, width, least, most;  ///< as in `uniform_range`
};
inline constexpr int mel_run = 16;  ///< bins of a mel filter that a thread works
struct mel_sizes {
  i64 length, mels;  ///< samples that are transformed, and filters
};

struct roi_sizes {
  i64 batch, channels, rows, cols;  ///< of the images
  i64 tall, wide, samples;          ///< bins of a region, samples of a bin
  i64 groups;                       ///< of channels that a thread works
  double scale;
};

/// One axis of op::resample: taps of a place, the result's extent, and the operand's extent and step.
struct resampled_axis {
  i64 taps, extent, from, step;
};
/// A result of op::resample, outermost dim in memory first: extents, and steps of the operand (0 along resampled dims)
/// and of the result. `copy` is from one of several results of a thread to the next; its extent says nothing.
struct resample_sizes {
  struct dim {
    i64 extent, from, to;
  };
  static constexpr int most_dims = 8;
  dim dims[most_dims], copy;
  resampled_axis axes[most_dims];
};
/// Sampling at points: extents of the images' spatial dims, 1 before those that there are; groups of channels that a
/// thread works, and channels of one. `from_last`: a point's first coordinate is the last dim's.
struct grid_sizes {
  i64 points, channels, groups, each, from_last;
  i64 lens[3];
};

}  // namespace kiln::gpu
