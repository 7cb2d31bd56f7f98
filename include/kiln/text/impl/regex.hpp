#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace kiln::language::detail {

/// The memory that matching needs; one thread uses it at a time, for any expression.
class regex_memory {
 public:
  regex_memory();
  ~regex_memory();
  regex_memory(const regex_memory&) = delete;
  regex_memory& operator=(const regex_memory&) = delete;

 private:
  friend class regex;
  struct pcre2_parts;
  std::unique_ptr<pcre2_parts> parts_;
};

/// A regular expression in Oniguruma's syntax, which tokenizer files are written in, compiled to machine code by PCRE2.
class regex {
 public:
  /// Throws `error` (`malformed`) with the expression and the place of its fault.
  explicit regex(std::string_view pattern);
  ~regex();
  regex(regex&&) noexcept;

  /// The first match in valid UTF-8 at or after `from`: its bytes are then [begin, end), which may be equal. Throws
  /// `error` (`limit`) where an expression tries too many ways to match.
  bool find(std::string_view text, std::size_t from, std::size_t& begin, std::size_t& end, regex_memory& memory) const;

 private:
  struct machine_code;
  std::unique_ptr<machine_code> code_;
};

/// The expression in PCRE2's syntax: classes within classes and their intersections, properties by Unicode's long
/// names, `\s`, `\w` and `\h` as Oniguruma defines them.
std::string to_pcre2_syntax(std::string_view pattern);

/// A text in which no character of an expression has a meaning of its own.
std::string escape_regex(std::string_view text);

}  // namespace kiln::language::detail
