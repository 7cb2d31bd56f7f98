#pragma once
#include <functional>
#include <random>
#include <vector>

#include "kiln/backend/hip/kernels/platform/platform.hpp"

namespace kiln::gpu {

/// Runs `body(shared)` in every lane of every block of a grid, one coroutine a lane. Shared memory is filled with NaNs
/// before each block. Throws what a lane throws, and where lanes wait that nobody lets go on. Blocks run by rows of y
/// or, a device having no order, so many `apart`.
void run_grid(int blocks_x, int blocks_y, int threads, std::size_t shared_bytes, const std::function<void(char*)>& body,
              int apart = 1);

/// Seeded values in [-1, 1) that f16 and bf16 hold exactly.
template <class T> std::vector<T> random_values(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<T> v(n);
  for (T& x : v) x = narrow<T>(static_cast<float>(static_cast<int>(engine() % 129) - 64) / 64.0f);
  return v;
}

}  // namespace kiln::gpu
