#pragma once
#include <cstdint>
#include <string_view>

#include "kiln/core/small_vector.hpp"

namespace kiln {

/// How often each rewrite of a list was applied, by name.
struct rewrite_counts {
  struct entry {
    std::string_view name;
    std::uint32_t count = 0;
  };
  small_vector<entry> entries;
  constexpr void add(std::string_view name) {
    for (entry& e : entries)
      if (e.name == name) {
        ++e.count;
        return;
      }
    entries.push_back({name, 1});
  }
  constexpr std::uint32_t total() const {
    std::uint32_t n = 0;
    for (const entry& e : entries) n += e.count;
    return n;
  }
};

}  // namespace kiln
