#pragma once
#include "kiln/backend/eigen/isa.hpp"

namespace kiln::eigen {

/// A pointwise convolution and the depthwise one that reads it as one step, both in NHWC: see
/// `kernels::expanded_depthwise_convolution`, whose operands have these names.
struct expanded_depthwise {
  kernels::conv_problem expand, depthwise;
  const float *x = nullptr, *expand_weights = nullptr, *depthwise_weights = nullptr;
  float* y = nullptr;
  std::ptrdiff_t x_step = 0, y_step = 0;  ///< elements between adjacent pixels
  conv_epilogue between, result;
};

/// The kernels of such steps of one instruction-set level.
struct expanded_depthwise_table {
  /// Floats of scratch, aligned to 64 bytes, that the two convolutions need.
  std::int64_t (*scratch_floats)(const expanded_depthwise& p, unsigned workers) = nullptr;
  void (*run)(thread_pool& pool, const expanded_depthwise& p, float* scratch) = nullptr;
};

/// The table of the level that the dynamic loader picked for this processor.
extern "C" const expanded_depthwise_table* kiln_eigen_expanded_depthwise();

}  // namespace kiln::eigen
