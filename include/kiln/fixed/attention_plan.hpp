#pragma once
#include "kiln/fixed/records.hpp"

namespace kiln::fixed {

/// How attention runs in a static program: a block of queries at a time meets the keys of a head, which are transposed
/// where enough queries read them.
struct attention_plan {
  std::int64_t block = 1, pitch = 16, depth = 1;
  bool packs = false;

  static constexpr attention_plan of(const place& query, const place& key) {
    attention_plan p;
    const std::int64_t queries = query.lens[2], readers = queries * (query.lens[1] / key.lens[1]);
    p.block = queries < 16 ? queries : 16;
    p.pitch = (key.lens[2] + 15) / 16 * 16;
    p.depth = query.lens[3];
    p.packs = readers >= 8;
    return p;
  }
  constexpr std::int64_t keys() const { return packs ? depth * pitch : 0; }
  /// Elements of memory: the transposed keys, then the scores of a block.
  constexpr std::int64_t elements() const { return keys() + block * pitch; }
};

}  // namespace kiln::fixed
