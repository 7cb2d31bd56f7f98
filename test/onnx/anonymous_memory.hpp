#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

namespace kiln::test {

/// Memory of this process that no file backs, in bytes; -1 where the system does not tell.
inline std::int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8)) * 1024;
  return -1;
}

/// The most of it that `f` takes at any time, beyond what there was before.
template <class F> std::int64_t anonymous_peak(F&& f) {
  const std::int64_t before = anonymous_bytes();
  std::atomic<bool> done = false;
  std::int64_t peak = before;
  std::thread watch([&] {
    while (!done) {
      peak = std::max(peak, anonymous_bytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  f();
  done = true;
  watch.join();
  return std::max(peak, anonymous_bytes()) - before;
}

}  // namespace kiln::test
