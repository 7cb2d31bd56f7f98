#pragma once
#include <cstddef>
#include <string_view>

namespace kiln {

/// Text as a template argument: a message that the compiler prints.
template <std::size_t N> struct static_text {
  char text[N + 1]{};
  constexpr static_text() = default;
  constexpr static_text(const char (&s)[N + 1]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = s[i];
  }
  constexpr std::string_view view() const { return {text, N}; }
};
template <std::size_t M> static_text(const char (&)[M]) -> static_text<M - 1>;

/// A word with a number after it, as text.
template <std::size_t Number, std::size_t M> constexpr auto text_with_number(const char (&word)[M]) {
  constexpr std::size_t digits = [] {
    std::size_t n = 1;
    for (std::size_t rest = Number / 10; rest != 0; rest /= 10) ++n;
    return n;
  }();
  static_text<M - 1 + digits> t;
  for (std::size_t i = 0; i + 1 < M; ++i) t.text[i] = word[i];
  std::size_t rest = Number;
  for (std::size_t k = digits; k-- > 0; rest /= 10) t.text[M - 1 + k] = static_cast<char>('0' + rest % 10);
  t.text[M - 1 + digits] = 0;  // clang prints an array as text where its last element was written, too
  return t;
}

/// Never defined: the compiler's first error names it, with the op, the rule, what was expected and what was found.
template <static_text... Why> struct this_program_cannot_be_built;

}  // namespace kiln
