#pragma once
#include "kiln/fixed/records.hpp"

namespace kiln::fixed {

/// A piece of memory that a plan uses from step `first` to step `last`.
struct buffer {
  static constexpr std::uint32_t never = 0xffff'ffff;
  memory where = memory::arena;
  std::int64_t index = 0, bytes = 0, base = 0;
  std::uint32_t first = never, last = 0;
};

/// Places the buffers of the arena, largest first, each at the lowest place that is free while it lives; gives the
/// arena's bytes.
constexpr std::int64_t share_arena(small_vector<buffer>& buffers) {
  small_vector<std::uint32_t> order, placed;
  for (std::uint32_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].where != memory::arena) continue;
    buffers[b].bytes = (buffers[b].bytes + 63) / 64 * 64;
    order.push_back(b);
    for (std::size_t k = order.size() - 1; k > 0 && buffers[order[k - 1]].bytes < buffers[b].bytes; --k) {
      order[k] = order[k - 1];
      order[k - 1] = b;
    }
  }
  std::int64_t whole = 0;
  for (std::uint32_t b : order) {
    buffer& mine = buffers[b];
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t other : placed) {
        const buffer& o = buffers[other];
        if (o.last < mine.first || mine.last < o.first) continue;
        if (mine.base >= o.base + o.bytes || o.base >= mine.base + mine.bytes) continue;
        mine.base = o.base + o.bytes;
        moved = true;
      }
    }
    placed.push_back(b);
    if (whole < mine.base + mine.bytes) whole = mine.base + mine.bytes;
  }
  return whole;
}

}  // namespace kiln::fixed
