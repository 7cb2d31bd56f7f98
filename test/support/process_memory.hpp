#pragma once
#include <cstdint>
#include <fstream>
#include <string>

namespace kiln::test {

/// A line of this process's memory that the system counts in KiB ("RssAnon:"), in bytes; -1 where it does not tell.
inline std::int64_t status_bytes(const std::string& line_start) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(line_start)) return std::stoll(line.substr(line_start.size())) * 1024;
  return -1;
}

}  // namespace kiln::test
