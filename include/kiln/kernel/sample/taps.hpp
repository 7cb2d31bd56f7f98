#pragma once
#include <cstdint>

namespace kiln::kernels {

/// Weighted sums of elements at the same places for all channels: y[i][c] = sum over k of weights[i][k] *
/// x[at[i][k]][c], or the greatest of these products. Channels lie side by side, or each is a plane.
struct tap_problem {
  std::int64_t channels = 1, count = 0, taps = 1;
  const std::int32_t* at = nullptr;  ///< pixels
  const float* weights = nullptr;
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t x_plane = 0, y_plane = 0;  ///< from channel to channel; 0 where they lie side by side
  bool greatest = false;
  bool adds = false;  ///< to what is at y
};

}  // namespace kiln::kernels
