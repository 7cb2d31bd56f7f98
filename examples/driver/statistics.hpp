#pragma once
#include <chrono>
#include <cstddef>
#include <vector>

namespace kiln::driver {

/// Milliseconds since it was made.
class stopwatch {
 public:
  double ms() const { return std::chrono::duration<double, std::milli>(clock::now() - start_).count(); }

 private:
  using clock = std::chrono::steady_clock;
  clock::time_point start_ = clock::now();
};

/// Order statistics of some timings.
struct statistics {
  double median = 0, min = 0, p95 = 0;
};

/// The median is the mean of the two middle values for an even count; p95 is the nearest rank. Zeros for none.
statistics summarize(std::vector<double> values);

/// The most memory this process has held, in bytes.
std::size_t peak_resident_bytes();

}  // namespace kiln::driver
