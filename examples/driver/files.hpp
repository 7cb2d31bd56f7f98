#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::driver {

/// A file's bytes. Errors: `not_found`, `io`.
std::vector<std::byte> read_file(const std::string& path);

/// Writes a file that appears only when whole: to a name of its own beside it first. Errors: `io`.
void write_file(const std::filesystem::path& path, std::string_view content);

/// Makes a folder and its parents. Errors: `io`.
void make_folder(const std::filesystem::path& path);

/// Files that appear together: each is written under another name, and `commit` gives all of them theirs. Without it
/// the destructor leaves nothing behind.
class file_group {
 public:
  file_group() = default;
  ~file_group();
  file_group(const file_group&) = delete;
  file_group& operator=(const file_group&) = delete;
  /// Lets `write` make the file at the path it is given.
  void add(const std::filesystem::path& path, const std::function<void(const std::string&)>& write);
  void commit();

 private:
  struct entry {
    std::filesystem::path temporary, final;
  };
  std::vector<entry> entries_;
};

}  // namespace kiln::driver
