#pragma once
#include <cstdint>

#include "kiln/core/small_vector.hpp"

namespace kiln::detail {

/// Appends what has to stand before `root`, then `root`: `before(i, k)` is the k-th instruction that i needs, `none`
/// after the last. `seen` marks what was met; of a cycle, what was met first comes last.
template <class Before>
constexpr void append_depth_first(std::uint32_t root, small_vector<std::uint8_t>& seen,
                                  small_vector<std::uint32_t>& out, Before&& before) {
  constexpr std::uint32_t none = 0xffff'ffff;
  struct frame {
    std::uint32_t at = 0, next = 0;
  };
  if (seen[root]) return;
  seen[root] = 1;
  small_vector<frame> stack;
  stack.push_back({root, 0});
  while (!stack.empty()) {
    frame& f = stack.back();
    const std::uint32_t needed = before(f.at, f.next++);
    if (needed == none) {
      out.push_back(f.at);
      stack.pop_back();
    } else if (!seen[needed]) {
      seen[needed] = 1;
      stack.push_back({needed, 0});
    }
  }
}

}  // namespace kiln::detail
