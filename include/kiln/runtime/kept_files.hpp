#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

// Files that outlive a program: compiled kernels, and which were the best of several.
namespace kiln {

/// Two independent 64-bit hashes (FNV-1a, and one with multiplication by the golden ratio's odd neighbor).
class digest {
 public:
  void add(std::string_view text) {
    for (char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      a_ = (a_ ^ byte) * 0x100000001b3u;
      b_ = (b_ + byte + 1) * 0x9e3779b97f4a7c15u;
      b_ ^= b_ >> 29;
    }
    a_ = (a_ ^ 0xff) * 0x100000001b3u;  // a border between texts
    b_ = b_ * 0x9e3779b97f4a7c15u + 1;
  }
  std::string str() const {
    constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (std::uint64_t part : {a_, b_})
      for (int shift = 60; shift >= 0; shift -= 4) out += digits[part >> shift & 15];
    return out;
  }

 private:
  std::uint64_t a_ = 0xcbf29ce484222325u, b_ = 0x2545f4914f6cdd1du;
};

/// A file's bytes; none where it can't be read.
std::string read_file(const std::filesystem::path& path);

/// A file under another name, which takes its own when it is whole: no reader sees a part of it. One that is not
/// finished is removed.
class draft_file {
 public:
  explicit draft_file(std::filesystem::path to);
  ~draft_file();
  draft_file(const draft_file&) = delete;
  draft_file& operator=(const draft_file&) = delete;
  void put(const void* bytes, std::size_t n);
  /// Why the file is not there now; nothing where it is. `durable`: its bytes and its name have then reached the disk,
  /// and a power failure leaves the whole file or the one before it.
  std::error_code finish(bool durable);

 private:
  std::filesystem::path to_, draft_;
  int descriptor_ = -1;
  std::error_code failed_;
};

/// Removes the drafts in a folder that nobody has written to for an hour: their processes were killed.
void remove_old_drafts(const std::filesystem::path& folder);

/// Writes by a draft. Failing to keep it costs only time. Whether the file is there now.
bool keep_file(const std::filesystem::path& path, const std::string& bytes);

/// kiln's folder in the user's cache; empty where the environment names no home.
std::filesystem::path user_cache_folder();

}  // namespace kiln
