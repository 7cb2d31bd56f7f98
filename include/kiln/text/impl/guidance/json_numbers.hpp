#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/text/impl/guidance/automaton.hpp"

namespace kiln::language::guidance {

/// Which numbers of JSON are meant; bounds are whole.
struct number_bounds {
  struct bound {
    std::int64_t at;
    bool is_in;
  };
  std::optional<bound> least{}, most{};
  bool is_whole = false;      ///< integers alone
  std::int64_t multiple = 1;  ///< of integers, at most `most_multiple`, and alone
  static constexpr std::int64_t most_multiple = 1000;
};

/// Adds paths for the texts of numbers, without an exponent, and gives the place after them.
automaton::node add_numbers(automaton& a, automaton::node from, const number_bounds& b);

}  // namespace kiln::language::guidance
