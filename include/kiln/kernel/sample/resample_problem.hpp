#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/core/dimension.hpp"

namespace kiln::kernels {

/// One dim of a resampled tensor.
struct resample_axis {
  std::int64_t in = 1, out = 1;
  std::int64_t taps = 1;
  const std::int32_t* at = nullptr;  ///< [taps, out], inside [0, in); null where the dim is kept
  const void* weights = nullptr;     ///< [taps, out] of the sums' type; null where an element is picked
  /// Of picked elements: each that often, where that is what `at` says. Of sums: the period of weights, where positions
  /// are one further after it, but for the first and the last two elements.
  std::int64_t repeats = 0;
};

/// Weighted sums along dims of dense x[outer, dims..., inner], from the first resampled dim to the last; see
/// `op::resample`.
struct resample_problem {
  std::int64_t outer = 1, inner = 1;
  std::size_t count = 0;  ///< dims
  resample_axis axes[max_rank];
  const void* x = nullptr;
  void* y = nullptr;
};

}  // namespace kiln::kernels
