#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "kiln/text/impl/guidance/automaton.hpp"
#include "kiln/text/impl/guidance/expression.hpp"

namespace kiln::language::guidance {

/// A deterministic automaton over bytes, whose first state is the begin.
struct regular {
  static constexpr std::int32_t none = -1;
  struct state {
    std::array<std::int32_t, 256> next;
    bool accepts = false;
  };
  std::vector<state> states;
};

/// The texts that an expression matches. Throws `error` (`limit`) where there are too many states.
regular regular_of(const expression& e);
/// Texts that both have, and those of `a` that `b` does not have.
regular intersection(const regular& a, const regular& b);
regular difference(const regular& a, const regular& b);
/// Texts of which no beginning is one.
regular shortest(regular a);
/// Adds its paths from a place on and gives the place after them.
automaton::node add_regular(automaton& to, automaton::node from, const regular& r);

}  // namespace kiln::language::guidance
