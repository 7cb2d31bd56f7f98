#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "kiln/core/small_vector.hpp"

namespace kiln {

/// Growing text usable in constant evaluation: what printing writes to, so that a graph prints the same characters
/// inside the compiler and at run time.
class text {
 private:
  // before its callers: clang instantiates a template for constant evaluation only where its body has been seen
  template <class F> constexpr text& append_shortest(F value, int most_digits) {
    if (value != value) return append(std::string_view("nan"));
    if (std::bit_cast<std::conditional_t<sizeof(F) == 4, std::int32_t, std::int64_t>>(value) < 0) {
      append('-');
      value = -value;
    }
    if (value > std::numeric_limits<F>::max()) return append(std::string_view("inf"));
    if (value == 0) return append('0');
    // long double carries the scaling exactly enough for 17 digits
    long double scaled = value;
    int exponent = 0;  // value = scaled * 10^exponent with 1 <= scaled < 10
    while (scaled >= 10) scaled /= 10, ++exponent;
    while (scaled < 1) scaled *= 10, --exponent;
    std::uint64_t mantissa = 0;
    int digits = 1;
    for (;; ++digits) {
      long double shifted = scaled;
      for (int i = 1; i < digits; ++i) shifted *= 10;
      mantissa = static_cast<std::uint64_t>(shifted + 0.5L);
      long double back = static_cast<long double>(mantissa);
      for (int i = exponent - digits + 1; i > 0; --i) back *= 10;
      for (int i = exponent - digits + 1; i < 0; ++i) back /= 10;
      if (digits == most_digits || static_cast<F>(back) == value) break;
    }
    char out[24]{};
    int n = 0;
    for (std::uint64_t rest = mantissa; rest; rest /= 10) out[n++] = static_cast<char>('0' + rest % 10);
    exponent += n - digits;  // rounding may have carried into one more digit
    int low = 0;
    while (low + 1 < n && out[low] == '0') ++low;
    const int kept = n - low;
    const auto digit = [&](int i) { return out[n - 1 - i]; };
    if (exponent >= -5 && exponent < 16) {
      if (exponent < 0) {
        append(std::string_view("0."));
        for (int i = -1; i > exponent; --i) append('0');
        for (int i = 0; i < kept; ++i) append(digit(i));
      } else {
        for (int i = 0; i < kept || i <= exponent; ++i) {
          if (i == exponent + 1) append('.');
          append(i < kept ? digit(i) : '0');
        }
      }
      return *this;
    }
    append(digit(0));
    if (kept > 1) append('.');
    for (int i = 1; i < kept; ++i) append(digit(i));
    append('e');
    return append(static_cast<std::int64_t>(exponent));
  }

 public:
  constexpr text() = default;
  constexpr text(std::string_view s) { append(s); }
  constexpr text(const char* s) { append(std::string_view(s)); }

  constexpr std::string_view view() const { return {chars_.data(), chars_.size()}; }
  constexpr operator std::string_view() const { return view(); }
  std::string str() const { return std::string(view()); }
  constexpr bool empty() const { return chars_.empty(); }
  constexpr std::size_t size() const { return chars_.size(); }

  constexpr text& append(std::string_view s) {
    for (char c : s) chars_.push_back(c);
    return *this;
  }
  constexpr text& append(char c) {
    chars_.push_back(c);
    return *this;
  }
  constexpr text& append(std::int64_t value) {
    if (value < 0) chars_.push_back('-');
    return append_unsigned(value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value));
  }
  constexpr text& append_unsigned(std::uint64_t value) {
    char digits[20]{};
    std::size_t n = 0;
    do digits[n++] = static_cast<char>('0' + value % 10);
    while (value /= 10);
    while (n) chars_.push_back(digits[--n]);
    return *this;
  }
  /// The shortest decimal that reads back as the same float.
  constexpr text& append(float value) { return append_shortest(value, 9); }
  constexpr text& append(double value) { return append_shortest(value, 17); }

  friend constexpr bool operator==(const text& a, const text& b) { return a.view() == b.view(); }
  friend constexpr bool operator==(const text& a, std::string_view b) { return a.view() == b; }

 private:
  small_vector<char> chars_;
};

}  // namespace kiln
