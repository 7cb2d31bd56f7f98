#include "kiln/backend/hip/impl/kept_files.hpp"

#include <atomic>
#include <fstream>
#include <iterator>

#include <unistd.h>

namespace kiln::hip {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return in ? std::string(std::istreambuf_iterator<char>(in), {}) : std::string();
}

void keep_file(const std::filesystem::path& path, const std::string& bytes) {
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
      return;
    }
  }
  std::filesystem::rename(draft, path, ignored);
  if (ignored) std::filesystem::remove(draft, ignored);
}

}  // namespace kiln::hip
