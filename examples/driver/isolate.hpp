#pragma once
#include <functional>
#include <string>

namespace kiln::driver {

/// What became of work in a process of its own.
struct isolated {
  std::string report;   ///< what the work returned
  std::string failure;  ///< why there is no report: a signal, an early exit, the time limit
};

/// Runs `work` in a forked process, so that a crash is an outcome. Its standard output goes to standard error.
/// `waiting` is called about five times a second meanwhile. A limit of 0 seconds is none. The caller must have no other
/// threads.
isolated isolate(const std::function<std::string()>& work, double limit_seconds,
                 const std::function<void()>& waiting = {});

}  // namespace kiln::driver
