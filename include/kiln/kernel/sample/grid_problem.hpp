#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/op/nn/grid_sample.hpp"

namespace kiln::kernels {

/// Positions between the elements of images, and where their taps go: tap k of position i to element k * step + i of
/// `at` and of `weights`. Whole vectors are written: up to 15 elements past the last position.
struct grid_problem {
  op::grid_sample op;
  std::size_t axes = 1;              ///< coordinates of a position, 1 to 3
  std::int64_t lens[3] = {1, 1, 1};  ///< extents of an image, the last ones where it has fewer axes
  const void* positions = nullptr;   ///< [count, axes], f32 or f64
  std::int64_t count = 0;            ///< positions
  std::int64_t step = 0;             ///< elements from tap to tap: a multiple of 16, count or more
  std::int32_t* at = nullptr;        ///< elements of a plane, [taps, step]
  void* weights = nullptr;           ///< [taps, step] of the positions' type
};

}  // namespace kiln::kernels
