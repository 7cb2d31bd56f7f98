#include "kiln/generate/weights/weight_table.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"

namespace kiln::language {

std::int64_t stored_bytes(weight_format format, dtype type, const std::vector<std::int64_t>& extents) {
  std::int64_t n = 1;
  for (const std::int64_t e : extents)
    if (e < 0 || __builtin_mul_overflow(n, e, &n)) return -1;
  if (format == weight_format::plain)
    return __builtin_mul_overflow(n, static_cast<std::int64_t>(size_of(type)), &n) ? -1 : n;
  const weight_block b = block_of(format);
  if (extents.empty() || extents.back() % b.numbers != 0) return -1;
  return __builtin_mul_overflow(n / b.numbers, static_cast<std::int64_t>(b.bytes), &n) ? -1 : n;
}

weight_table::weight_table(std::vector<weight_entry> all) : all_(std::move(all)) {
  std::sort(all_.begin(), all_.end(), [](const weight_entry& a, const weight_entry& b) { return a.name < b.name; });
  for (std::size_t k = 1; k < all_.size(); ++k)
    if (all_[k].name == all_[k - 1].name)
      throw error(errc::malformed, "tensor '" + all_[k].name + "': expected one of that name, found two");
}

const weight_entry* weight_table::find(std::string_view name) const {
  const auto at = std::lower_bound(all_.begin(), all_.end(), name,
                                   [](const weight_entry& e, std::string_view n) { return e.name < n; });
  return at == all_.end() || at->name != name ? nullptr : &*at;
}

}  // namespace kiln::language
