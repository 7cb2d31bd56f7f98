#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace kiln::testing {

/// `count` values drawn uniformly from [-1, 1).
template <class T> std::vector<T> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<T> value(-1, 1);
  std::vector<T> result(static_cast<std::size_t>(count));
  for (T& x : result) x = value(engine);
  return result;
}

/// Floats of all sizes whose least bit is still a normal number, and some whose bits carry when they are rounded.
inline std::vector<float> values_of_all_sizes(std::int64_t count, unsigned seed) {
  std::vector<float> x = random_values<float>(count, seed);
  const std::vector<float> more = random_values<float>(count, seed + 1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], static_cast<int>(80 * more[i]));
  for (std::size_t i = 0; i + 4 < x.size(); i += 11)
    x[i] = 0x1.fffffep3F, x[i + 1] = -0x1.fe8p-20F, x[i + 2] = 0, x[i + 3] = 0x1.017ffep10F;
  return x;
}

}  // namespace kiln::testing
