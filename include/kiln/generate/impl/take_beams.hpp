#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "kiln/generate/impl/beam_search.hpp"

namespace kiln::language::detail {

/// Makes rows the beams that were chosen. The last beam that continues an old one takes its memory; others copy it.
template <class Row> void take_beams(std::span<Row> own, std::span<const beam_search::choice> chosen) {
  std::vector<std::size_t> users(own.size(), 0);
  for (const auto& c : chosen) ++users[c.from];
  std::vector<Row> fresh(own.size());
  for (std::size_t k = 0; k < own.size(); ++k) {
    Row& from = own[chosen[k].from];
    const bool last = --users[chosen[k].from] == 0;
    fresh[k].state = last ? std::move(from.state) : from.state.clone();
    fresh[k].seen = last ? std::move(from.seen) : from.seen;
    fresh[k].real = last ? std::move(from.real) : from.real;
    fresh[k].seen.push_back(chosen[k].next);
    fresh[k].real.push_back(chosen[k].next);
  }
  std::move(fresh.begin(), fresh.end(), own.begin());
}

}  // namespace kiln::language::detail
