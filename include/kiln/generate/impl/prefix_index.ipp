#include "kiln/generate/impl/prefix_index.hpp"

#include <algorithm>

namespace kiln::language::detail {

std::size_t prefix_index::hash::operator()(const key& k) const {
  std::uint64_t h = (k.parent + 1) * 0x9e3779b97f4a7c15u;
  for (const token t : k.own) h = (h ^ static_cast<std::uint64_t>(t)) * 0x100000001b3u + (h >> 29);
  return static_cast<std::size_t>(h ^ (h >> 32));
}
prefix_index::key prefix_index::key_at(std::uint64_t parent, std::span<const token> all, std::size_t k) const {
  const auto own = all.subspan(k * block_, block_);
  return {parent, tokens(own.begin(), own.end())};
}

std::vector<page> prefix_index::find(std::span<const token> all, std::size_t most, std::uint64_t root) {
  std::vector<page> out;
  std::vector<entry*> met;
  std::uint64_t parent = root;
  while (out.size() < most && (out.size() + 1) * block_ <= all.size()) {
    const auto at = known_.find(key_at(parent, all, out.size()));
    if (at == known_.end()) break;
    parent = at->second.number;
    met.push_back(&at->second);
    out.push_back(at->second.memory);
  }
  // a page is of no use without those before it: these are used later
  for (std::size_t k = met.size(); k-- > 0;) met[k]->used = ++clock_;
  return out;
}

void prefix_index::add(std::span<const token> all, std::span<const page> pages, std::uint64_t root) {
  std::uint64_t parent = root;
  std::vector<entry*> met;
  for (std::size_t k = 0; (k + 1) * block_ <= all.size() && k < pages.size(); ++k) {
    key own = key_at(parent, all, k);
    auto at = known_.find(own);
    if (at == known_.end()) at = known_.emplace(std::move(own), entry{++numbers_, 0, pages[k]}).first;
    met.push_back(&at->second);
    parent = at->second.number;
  }
  for (std::size_t k = met.size(); k-- > 0;) met[k]->used = ++clock_;
}

std::size_t prefix_index::release(std::size_t count) {
  std::vector<std::pair<std::uint64_t, key>> free;
  for (const auto& [k, e] : known_)
    if (e.memory.use_count() == 1) free.push_back({e.used, k});
  count = std::min(count, free.size());
  const auto end = free.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(free.begin(), end, free.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto k = free.begin(); k != end; ++k) known_.erase(k->second);
  return count;
}

std::size_t prefix_index::unused() const {
  return static_cast<std::size_t>(
      std::count_if(known_.begin(), known_.end(), [](const auto& e) { return e.second.memory.use_count() == 1; }));
}

}  // namespace kiln::language::detail
