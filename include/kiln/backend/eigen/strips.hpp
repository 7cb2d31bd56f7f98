#pragma once
#include <algorithm>
#include <cstdint>

#include "kiln/core/mapped_file.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {

/// Columns of a strip are a multiple of this, and so whole panels of packed weights at every instruction-set level.
inline constexpr std::int64_t strip_columns = 64;

/// Packs a constant's columns, which lie one after the other in `stored`, `column_bytes` each from `first` on: calls
/// `pack(column, end)` for strips of them and gives the pages of a mapped file back after each. So a strip alone, of 4
/// MiB or one for each thread, is in memory as it is stored and packed.
template <class Pack>
void pack_in_strips(const thread_pool& pool, const buffer& stored, const std::byte* first, std::int64_t column_bytes,
                    std::int64_t columns, Pack&& pack) {
  const std::int64_t bytes = std::max<std::int64_t>(4, pool.size()) << 20;
  const std::int64_t strip =
      std::max<std::int64_t>(1, bytes / std::max<std::int64_t>(1, column_bytes) / strip_columns) * strip_columns;
  for (std::int64_t column = 0; column < columns; column += strip) {
    const std::int64_t end = std::min(columns, column + strip);
    pack(column, end);
    if (strip >= columns) return;  // who packs a small matrix gives it back whole
    const auto at = static_cast<std::size_t>(first - stored.data() + column * column_bytes);
    forget_pages(
        buffer_part(stored, at, std::min(stored.size() - at, static_cast<std::size_t>((end - column) * column_bytes))));
  }
}

}  // namespace kiln::eigen
