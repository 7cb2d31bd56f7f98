#include "statistics.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

namespace kiln::driver {

statistics summarise(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size(), rank = static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(n)));
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values[rank - 1]};
}

std::size_t peak_resident_bytes() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<std::size_t>(use.ru_maxrss) * 1024;
}

}  // namespace kiln::driver
