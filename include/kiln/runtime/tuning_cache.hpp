#pragma once
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace kiln {

/// Which of several kernels was the best, by problem, in one file for all targets, programs and processes. A key names
/// what the answer hangs on: the machine, the version of the kernels, and the problem. Lines of the file are a
/// checksum, a key and a choice with tabs between. All members may be called from several threads at once, and
/// processes that write at the same time lose nothing of each other's.
class tuning_cache {
 public:
  static constexpr const char* file_name = "tuned.tsv";
  /// The user's: ~/.cache/kiln/tuned.tsv, or under $XDG_CACHE_HOME; empty where neither is to be had.
  static std::filesystem::path default_file();

  /// An empty path keeps choices in memory alone.
  explicit tuning_cache(std::filesystem::path file);
  /// The choice that was kept for a problem.
  std::optional<std::string> find(std::string_view key);
  /// Keeps a choice, also in the file, beside what others have written there meanwhile.
  void keep(std::string_view key, std::string_view choice);
  /// What is wrong with the file, for the user; empty where nothing is. A file that is no tuning cache is neither read
  /// nor written, damaged lines are left out, and a file that can't be written costs only time.
  std::string remark() const;
  const std::filesystem::path& file() const { return file_; }

 private:
  using entries = std::map<std::string, std::string, std::less<>>;
  bool read(entries& to);
  void load();

  std::filesystem::path file_;
  mutable std::mutex lock_;
  entries known_;
  std::string remark_;
  bool loaded_ = false, foreign_ = false;
};

}  // namespace kiln
