#pragma once
#include <cstddef>
#include <cstdint>

#include "kiln/op/nn/grid_sample.hpp"

namespace kiln::kernels {

/// Positions between the elements of images: tap k of position i is at places[k * step + i].
struct grid_problem {
  op::grid_sample op;
  std::size_t axes = 1;
  std::int64_t lens[3] = {1, 1, 1};  ///< of an image, the last ones where it has fewer axes
  const void* positions = nullptr;   ///< [count, axes]
  std::int64_t count = 0, step = 0;  ///< step: count, or more, as a multiple of 16
  std::int32_t* at = nullptr;
  void* weights = nullptr;
};

}  // namespace kiln::kernels
