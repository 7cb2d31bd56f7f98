#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace kiln {

/// The name of an enumerator, given all of them in order; empty for a number that is none.
template <class Enum>
constexpr std::string_view enumerator_name(Enum e, std::initializer_list<std::string_view> names) {
  return static_cast<unsigned>(e) < names.size() ? names.begin()[static_cast<unsigned>(e)] : std::string_view();
}

/// Text of at most N characters stored in place (longer text is cut and ends in "..."): messages built during constant
/// evaluation, names and string attributes.
template <std::size_t N> struct inline_string {
  char text[N + 1]{};
  std::size_t count = 0;

  constexpr inline_string() = default;
  constexpr inline_string(const char* s) { append(std::string_view(s)); }
  constexpr inline_string(std::string_view s) { append(s); }

  constexpr std::string_view view() const { return {text, count}; }
  constexpr operator std::string_view() const { return view(); }
  constexpr bool empty() const { return count == 0; }
  constexpr std::size_t size() const { return count; }

  constexpr inline_string& append(std::string_view s) {
    for (char c : s) {
      if (count == N) {
        for (std::size_t i = N >= 3 ? N - 3 : 0; i < N; ++i) text[i] = '.';
        return *this;
      }
      text[count++] = c;
    }
    return *this;
  }
  constexpr inline_string& append(std::int64_t value) {
    char digits[20]{};
    std::size_t n = 0;
    std::uint64_t rest = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    do digits[n++] = static_cast<char>('0' + rest % 10);
    while (rest /= 10);
    if (value < 0) append("-");
    while (n) append(std::string_view(&digits[--n], 1));
    return *this;
  }
  friend constexpr bool operator==(const inline_string& a, const inline_string& b) { return a.view() == b.view(); }
};

}  // namespace kiln
