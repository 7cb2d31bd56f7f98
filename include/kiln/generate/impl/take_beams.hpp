#pragma once
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "kiln/generate/impl/beam_search.hpp"

namespace kiln::language::detail {

/// Makes rows the beams that were chosen. The last beam that continues an old one takes its memory; others copy it.
/// Where a copy throws, rows are as before.
template <class Row> void take_beams(std::span<Row> own, std::span<const beam_search::choice> chosen) {
  std::vector<std::size_t> last(own.size(), 0);  // of the beams that continue each
  for (std::size_t k = 0; k < own.size(); ++k) last[chosen[k].from] = k;
  const auto takes = [&](std::size_t k) { return last[chosen[k].from] == k; };
  const auto has_room = [](auto& list) {
    if (list.size() == list.capacity()) list.reserve(2 * list.size() + 1);
  };
  std::vector<Row> fresh(own.size());
  for (std::size_t k = 0; k < own.size(); ++k) {
    Row& from = own[chosen[k].from];
    if (takes(k)) {
      has_room(from.seen), has_room(from.real);
    } else {
      fresh[k].state = from.state.clone();
      fresh[k].seen = from.seen, fresh[k].real = from.real;
      has_room(fresh[k].seen), has_room(fresh[k].real);
    }
  }
  // nothing throws from here on
  for (std::size_t k = 0; k < own.size(); ++k) {
    Row& from = own[chosen[k].from];
    if (takes(k)) {
      fresh[k].state = std::move(from.state);
      fresh[k].seen = std::move(from.seen), fresh[k].real = std::move(from.real);
    }
    fresh[k].seen.push_back(chosen[k].next);
    fresh[k].real.push_back(chosen[k].next);
  }
  std::move(fresh.begin(), fresh.end(), own.begin());
}

}  // namespace kiln::language::detail
