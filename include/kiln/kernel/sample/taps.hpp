#pragma once
#include <cstdint>

namespace kiln::kernels {

/// Weighted sums of elements at the same places for all channels: y[i][c] = sum over k of w(i, k) * x[at(i, k)][c], or
/// the greatest of these products. Channels lie side by side, or each is a plane.
template <class T> struct tap_problem {
  std::int64_t channels = 1, count = 0, taps = 1;
  const std::int32_t* at = nullptr;  ///< pixels; tap k of result i is element i * result_step + k * tap_step
  const T* weights = nullptr;        ///< the same
  std::int64_t result_step = 1, tap_step = 1;
  const T* x = nullptr;
  T* y = nullptr;
  std::int64_t x_plane = 0, y_plane = 0;  ///< from channel to channel; 0 where they lie side by side
  bool greatest = false;
  bool adds = false;  ///< to what is at y
};

}  // namespace kiln::kernels
