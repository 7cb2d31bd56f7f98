#include "kiln/runtime/cache_size.hpp"

#include <unistd.h>

#include <fstream>

namespace kiln {

std::size_t last_cache_bytes(const std::filesystem::path& folder) {
  std::size_t bytes = 0;
  int last = 0;
  for (int index = 0;; ++index) {
    const std::filesystem::path cache = folder / ("index" + std::to_string(index));
    std::ifstream level_file(cache / "level"), size_file(cache / "size");
    int level = 0;
    std::size_t size = 0;
    if (!(level_file >> level) || !(size_file >> size)) break;
    if (level <= last) continue;
    last = level;
    const int unit = size_file.peek();
    bytes = size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0);
  }
  if (bytes != 0) return bytes;
  const long told = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return told > 0 ? static_cast<std::size_t>(told) : std::size_t{1} << 25;
}

}  // namespace kiln
