#include "kiln/generate/impl/prefix_cache.hpp"

#include <algorithm>

namespace kiln::language::detail {

std::uint64_t prefix_cache::root_of(const values& active) {
  if (active.empty()) return 0;
  std::erase_if(roots_, [](const auto& known) {
    return std::any_of(known.second.begin(), known.second.end(), [](const auto& w) { return w.expired(); });
  });
  const auto at = std::find_if(roots_.begin(), roots_.end(), [&](const auto& known) {
    return std::equal(active.begin(), active.end(), known.second.begin(), known.second.end(),
                      [](const auto& a, const auto& b) { return !a.owner_before(b) && !b.owner_before(a); });
  });
  if (at != roots_.end()) return prefix_index::root(at->first);
  auto& made = roots_.emplace_back(++root_count_, 0);
  made.second.assign(active.begin(), active.end());
  return prefix_index::root(root_count_);
}

std::vector<page> prefix_cache::find(std::span<const token> all, std::size_t most, const values& active) {
  const std::lock_guard lock(guard_);
  return index_.find(all, most, root_of(active));
}
void prefix_cache::add(std::span<const token> all, std::span<const page> pages, const values& active) {
  const std::lock_guard lock(guard_);
  index_.add(all, pages, root_of(active));
}
std::size_t prefix_cache::release(std::size_t count) {
  const std::lock_guard lock(guard_);
  return index_.release(count);
}
std::size_t prefix_cache::size() const {
  const std::lock_guard lock(guard_);
  return index_.size();
}
bool prefix_cache::give_up() {
  {
    const std::lock_guard lock(guard_);
    index_.release(index_.unused());
  }
  return pool_.free_spare();
}
void prefix_cache::trim() {
  constexpr std::size_t kept = 64;
  const std::lock_guard lock(guard_);
  const std::size_t unused = index_.unused(), all = std::max(pool_.used(), unused);
  if (unused > kept + (all - unused)) index_.release(unused - kept - (all - unused));
}

}  // namespace kiln::language::detail
