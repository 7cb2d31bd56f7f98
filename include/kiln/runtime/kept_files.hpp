#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

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

/// Writes under another name first: a reader never sees half a file. Failing to keep it costs only time.
/// Whether the file is there now.
bool keep_file(const std::filesystem::path& path, const std::string& bytes);

/// kiln's folder in the user's cache; empty where the environment names no home.
std::filesystem::path user_cache_folder();

}  // namespace kiln
