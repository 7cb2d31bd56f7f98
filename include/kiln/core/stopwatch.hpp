#pragma once
#include <chrono>
#include <cstdio>
#include <string>

namespace kiln {

/// The time since it was made.
class stopwatch {
 public:
  double ms() const { return std::chrono::duration<double, std::milli>(clock::now() - start_).count(); }
  /// As text: "12.3 ms".
  std::string str() const {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f ms", ms());
    return text;
  }

 private:
  using clock = std::chrono::steady_clock;
  clock::time_point start_ = clock::now();
};

}  // namespace kiln
