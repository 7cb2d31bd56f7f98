#pragma once

#include <algorithm>
#include <vector>

#include "kiln/text/impl/split/splitters.hpp"

namespace kiln::language::detail {

/// Splits a piece at the matches of a pattern. `next(from, begin, end)` finds the first match at or after `from`, in
/// bytes of the piece, and may find empty ones, which split too. `invert` swaps matches and what lies between them.
template <class Next>
void split_at_matches(piece whole, split_behavior behavior, bool invert, Next&& next, std::vector<piece>& out) {
  const std::uint32_t size = whole.end - whole.begin;
  const std::size_t first = out.size();
  bool previous = false;  // whether the part before was a match
  const auto add = [&](std::size_t begin, std::size_t end, bool match) {
    const piece p{whole.begin + static_cast<std::uint32_t>(begin), whole.begin + static_cast<std::uint32_t>(end)};
    switch (behavior) {
      case split_behavior::isolated: out.push_back(p); return;
      case split_behavior::removed:
        if (!match) out.push_back(p);
        return;
      case split_behavior::contiguous:
        if (match == previous && out.size() > first)
          out.back().end = p.end;
        else
          out.push_back(p);
        break;
      case split_behavior::merged_with_previous:
        if (match && !previous && out.size() > first)
          out.back().end = p.end;
        else
          out.push_back(p);
        break;
      case split_behavior::merged_with_next:  // a match joins what follows, unless that is a match
        if (!match && previous && out.size() > first)
          out.back().end = p.end;
        else
          out.push_back(p);
        break;
    }
    previous = match;
  };
  std::size_t done = 0;
  for (std::size_t from = 0, begin = 0, end = 0; from <= size && next(from, begin, end);) {
    if (done < begin) add(done, begin, invert);
    add(begin, end, !invert);
    done = end;
    from = end;
  }
  if (done < size) add(done, size, invert);
}

}  // namespace kiln::language::detail
