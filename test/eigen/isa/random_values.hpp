#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace kiln::testing {

/// `count` values drawn uniformly from [-1, 1).
template <class T>
std::vector<T> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<T> value(-1, 1);
  std::vector<T> result(static_cast<std::size_t>(count));
  for (T& x : result) x = value(engine);
  return result;
}

}  // namespace kiln::testing
