#include "kiln/text/impl/double_array.hpp"

#include <algorithm>

namespace kiln::language::detail {

// A base from which the units of all bytes are free.
std::int32_t double_array::place(std::span<const unsigned char> bytes) {
  while (first_free_ < units_.size() && units_[first_free_].parent >= 0) ++first_free_;
  std::size_t passed = 0, taken = 0;
  for (std::size_t first = std::max<std::size_t>(first_free_, bytes[0] + std::size_t{1});; ++first, ++passed) {
    const std::size_t base = first - bytes[0];
    if (base + 256 > units_.size()) units_.resize(units_.size() + units_.size() / 2 + 512);
    if (units_[first].parent >= 0) {
      ++taken;
      continue;
    }
    const bool fits =
        std::all_of(bytes.begin(), bytes.end(), [&](unsigned char b) { return units_[base + b].parent < 0; });
    if (!fits) continue;
    // a stretch that is nearly full is not searched again
    if (passed > 64 && taken * 20 >= passed * 19) first_free_ = first;
    return static_cast<std::int32_t>(base);
  }
}

double_array::double_array(std::vector<entry> entries) {
  if (entries.empty()) return;
  std::stable_sort(entries.begin(), entries.end(), [](const entry& a, const entry& b) { return a.first < b.first; });
  struct work {
    std::size_t begin, end, depth;  // entries that share the first `depth` bytes
    std::int32_t node;
  };
  units_.resize(1024);
  units_[root].parent = root;
  std::vector<work> open{{0, entries.size(), 0, root}};
  std::vector<unsigned char> bytes;
  std::vector<std::size_t> starts;
  while (!open.empty()) {
    work now = open.back();
    open.pop_back();
    if (entries[now.begin].first.size() == now.depth) {
      units_[static_cast<std::size_t>(now.node)].value = entries[now.begin].second;
      while (now.begin < now.end && entries[now.begin].first.size() == now.depth) ++now.begin;
    }
    if (now.begin == now.end) continue;
    bytes.clear();
    starts.clear();
    for (std::size_t e = now.begin; e < now.end; ++e) {
      const auto byte = static_cast<unsigned char>(entries[e].first[now.depth]);
      if (!bytes.empty() && bytes.back() == byte) continue;
      bytes.push_back(byte);
      starts.push_back(e);
    }
    starts.push_back(now.end);
    const std::int32_t base = place(bytes);
    units_[static_cast<std::size_t>(now.node)].base = base;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::int32_t child = base + bytes[i];
      units_[static_cast<std::size_t>(child)].parent = now.node;
      open.push_back({starts[i], starts[i + 1], now.depth + 1, child});
    }
  }
  std::size_t used = units_.size();
  while (used > 1 && units_[used - 1].parent < 0) --used;
  units_.resize(used);
}

}  // namespace kiln::language::detail
