#include "kiln/runtime/kept_files.hpp"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <unistd.h>

namespace kiln {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return in ? std::string(std::istreambuf_iterator<char>(in), {}) : std::string();
}

bool keep_file(const std::filesystem::path& path, const std::string& bytes) {
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  static std::atomic<unsigned> count{0};
  const std::filesystem::path draft =
      path.string() + "." + std::to_string(getpid()) + "." + std::to_string(++count) + ".part";
  {
    std::ofstream out(draft, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.good()) {
      out.close();
      std::filesystem::remove(draft, ignored);
      return false;
    }
  }
  std::filesystem::rename(draft, path, ignored);
  if (!ignored) return true;
  std::filesystem::remove(draft, ignored);
  return false;
}

std::filesystem::path user_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache) return std::filesystem::path(cache) / "kiln";
  const char* home = std::getenv("HOME");
  return home && *home ? std::filesystem::path(home) / ".cache" / "kiln" : std::filesystem::path();
}

}  // namespace kiln
