#pragma once
#include <algorithm>
#include <cstddef>

namespace kiln {

/// Text as a template argument: a message that the compiler prints.
template <std::size_t N>
struct static_text {
  char text[N + 1]{};
  constexpr static_text() = default;
  constexpr static_text(const char (&s)[N + 1]) { std::copy_n(s, N, text); }
};
template <std::size_t M>
static_text(const char (&)[M]) -> static_text<M - 1>;

/// Never defined: the compiler's first error names it, with the op, the rule, what was expected and what was found.
template <static_text... Why>
struct this_program_cannot_be_built;

}  // namespace kiln
