#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/core/dtype.hpp"
#include "kiln/core/error.hpp"
#include "kiln/core/trace.hpp"

namespace kiln::fixed {

inline void put_piece(std::string& to, std::string_view s) { to += s; }
template <std::integral N>
void put_piece(std::string& to, N n) {
  to += std::to_string(n);
}

/// Text of pieces: strings and integers.
template <class... Pieces>
std::string cat(const Pieces&... pieces) {
  std::string s;
  (put_piece(s, pieces), ...);
  return s;
}

/// Lines of C++, indented by the braces that are open.
class cpp_writer {
 public:
  template <class... Pieces>
  void line(const Pieces&... pieces) {
    const std::string s = cat(pieces...);
    if (s.starts_with('}')) --depth_;
    if (!s.empty() && s[0] != '#') text_.append(2 * depth_, ' ');
    text_ += s;
    text_ += '\n';
    if (s.ends_with('{')) ++depth_;
  }
  /// `for (std::int64_t name = 0; name < extent; ++name) {`; nothing for an extent of 1, whose index is 0.
  void loop(std::string_view name, std::int64_t extent) {
    line("for (std::int64_t ", name, " = 0; ", name, " < ", extent, "; ++", name, ") {");
  }
  void close(std::size_t loops = 1) {
    while (loops-- > 0) line("}");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::size_t depth_ = 0;
};

/// A sum of constant multiples of loop variables: an element offset.
struct index_text {
  std::string s;
  index_text& add(std::string_view variable, std::int64_t step) {
    if (step == 0) return *this;
    if (!s.empty()) s += " + ";
    s += step == 1 ? std::string(variable) : cat(variable, " * ", step);
    return *this;
  }
  index_text& add(std::int64_t constant) {
    if (constant == 0) return *this;
    if (!s.empty()) s += " + ";
    s += std::to_string(constant);
    return *this;
  }
  std::string str() const { return s.empty() ? "0" : s; }
};

/// The C++ type of stored elements; throws for dtypes that exported programs do not know.
inline std::string stored_name(dtype t) {
  if (is_narrow(t) || is_object(t)) raise(errc::unsupported, cat("an exported program has no dtype ", to_string(t)));
  switch (t) {
    case dtype::f64:
      return "double";
    case dtype::f32:
      return "float";
    case dtype::boolean:
      return "bool";
    case dtype::f16:
    case dtype::bf16:
      raise(errc::unsupported, cat("an exported program has no dtype ", to_string(t), ": convert the model to f32"));
    default:
      return cat("std::", is_unsigned_integer(t) ? "u" : "", "int", size_of(t) * 8, "_t");
  }
}

/// The kind of the values that a dtype is computed in.
inline scalar_kind kind_of_values(dtype t) {
  return t == dtype::f64          ? scalar_kind::f64
         : is_float(t)            ? scalar_kind::f32
         : is_signed_integer(t)   ? scalar_kind::i64
         : is_unsigned_integer(t) ? scalar_kind::u64
                                  : scalar_kind::boolean;
}

inline std::string value_name(dtype t) {
  switch (kind_of_values(t)) {
    case scalar_kind::f64:
      return "double";
    case scalar_kind::f32:
      return "float";
    case scalar_kind::i64:
      return "std::int64_t";
    case scalar_kind::u64:
      return "std::uint64_t";
    default:
      return "bool";
  }
}

}  // namespace kiln::fixed
