#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "support/process_memory.hpp"

namespace kiln::test {

/// Memory of this process that no file backs, in bytes; -1 where the system does not tell.
inline std::int64_t anonymous_bytes() { return status_bytes("RssAnon:"); }

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
