#include "statistics.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace kiln::driver {

statistics summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size(), rank = static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(n)));
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values[rank - 1]};
}

// The kernel's own count for this program; that of getrusage starts with what the parent had when it forked.
std::size_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::size_t kibibytes = 0; word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<std::size_t>(use.ru_maxrss) * 1024;
}

}  // namespace kiln::driver
