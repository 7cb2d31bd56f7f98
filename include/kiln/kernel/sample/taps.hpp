#pragma once
#include <cstdint>

namespace kiln::kernels {

/// Weighted sums of elements of planes at the same places in each: y[c][i] = sum over k of weights[k][i] *
/// x[c][at[k][i]], or the greatest of these products, for `count` results of each plane.
struct tap_problem {
  std::int64_t planes = 1, count = 0, taps = 1;
  std::int64_t step = 0;             ///< from at[k] to at[k + 1], as of weights
  const std::int32_t* at = nullptr;  ///< inside a plane
  const float* weights = nullptr;
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t x_plane = 0, y_plane = 0;  ///< elements from plane to plane
  bool greatest = false;
  bool adds = false;  ///< to what is at y
};

}  // namespace kiln::kernels
