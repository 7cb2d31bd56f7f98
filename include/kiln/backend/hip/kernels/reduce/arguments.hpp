#pragma once
#include "kiln/backend/hip/kernels/platform/storage_types.hpp"

// Numbers that kernels along an axis and over windows are passed; host and device include this header (see
// gemm/arguments.hpp).

namespace kiln::gpu {

/// A tensor around one axis: [outer, extent, inner]; `count` results of an axis where there are several.
struct axis_sizes {
  i64 extent, inner, count;
};

/// Rows' best elements: the rows as `axis_sizes`, each in `runs` runs of `length` sorted entries; of two of them `kept`
/// become one. Entries are read from number `from` of the scratch memory on and written from `to` on.
struct topk_sizes {
  i64 extent, inner, count;
  i64 runs, length, kept, from, to;
};

struct pool_sizes {
  struct dim {
    i64 in, out, window, stride, dilation, before, after;  ///< extents first, paddings last
    i64 in_step, out_step;                                 ///< elements from place to place
  };
  dim dims[3];
  struct step {
    i64 in, out;
  };
  i64 channels;         ///< or runs of them that one thread works
  step image, channel;  ///< elements from one to the next
  i64 counts_padding, power;
  i64 least;  ///< value of the dtype
};

struct lrn_sizes {
  i64 channels, inner, before, after;  ///< elements after a channel; channels of a window before and after
  double alpha, beta, bias;
};

}  // namespace kiln::gpu
