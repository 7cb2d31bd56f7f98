#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

/// Code that is compiled for a device while a program is compiled or run, and choices among such, by the hash of what
/// decides them. A saved program keeps it. Threads may share one.
class kept_code {
 public:
  std::optional<std::string> find(std::string_view key) const;
  void keep(std::string_view key, std::string_view code);
  /// All of it, by key.
  std::map<std::string, std::string, std::less<>> entries() const;

 private:
  mutable std::mutex lock_;
  std::map<std::string, std::string, std::less<>> entries_;
};

}  // namespace kiln
