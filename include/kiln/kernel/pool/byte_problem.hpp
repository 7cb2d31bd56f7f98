#pragma once
#include "kiln/kernel/pool/problem.hpp"

namespace kiln::kernels {

/// Images of bytes to be pooled: steps in bytes. The windows are those of a `pooling_problem`.
struct byte_pooling {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  std::int64_t batch = 1, channels = 1;
  std::ptrdiff_t x_image = 0, x_channel = 1, x_axis[3] = {};
  std::ptrdiff_t y_image = 0, y_channel = 1, y_axis[3] = {};
};

}  // namespace kiln::kernels
