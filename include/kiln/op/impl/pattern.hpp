#pragma once
#include <memory>
#include <string>

namespace kiln::op::detail {

/// A regular expression that a whole string matches or not (ONNX RegexFullMatch): RE2's syntax over UTF-8 where kiln
/// was built with RE2, else ECMAScript's over bytes. Time is linear in the string. A pattern that is none is an
/// `unsupported` error.
class text_pattern {
 public:
  explicit text_pattern(const std::string& pattern);
  ~text_pattern();
  bool matches_all_of(const std::string& text) const;

 private:
  struct engine;
  std::unique_ptr<const engine> engine_;
};

}  // namespace kiln::op::detail
