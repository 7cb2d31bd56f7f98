#include "kiln/runtime/cache_size.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace kiln {
namespace {

// "0-3,8,10-11" counts 7 processors.
unsigned count_processors(std::istream& list) {
  unsigned count = 0;
  for (unsigned first = 0; list >> first; list.ignore()) {
    unsigned last = first;
    if (list.peek() == '-') list.ignore() >> last;
    count += last >= first ? last - first + 1 : 0;
  }
  return std::max(count, 1U);
}

}  // namespace

shared_cache last_cache(const std::filesystem::path& folder) {
  shared_cache found;
  int last = 1;
  for (int index = 0;; ++index) {
    const std::filesystem::path cache = folder / ("index" + std::to_string(index));
    std::ifstream level_file(cache / "level"), size_file(cache / "size"), list(cache / "shared_cpu_list");
    int level = 0;
    if (!(level_file >> level)) break;
    if (level <= last) continue;
    last = level;
    std::size_t size = 0;
    size_file >> size;
    const int unit = size_file.peek();
    found = {size << (unit == 'K' ? 10 : unit == 'M' ? 20 : 0), count_processors(list)};
  }
  if (found.bytes != 0) return found;
  constexpr std::size_t usual = std::size_t{1} << 25;
  const long told = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return {told > 0 ? std::min(static_cast<std::size_t>(told), usual) : usual, 1};
}

}  // namespace kiln
