#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace kiln::language::jinja {

struct program;

/// How a template's text is read; the defaults are Hugging Face's for chat templates.
struct syntax {
  bool trim_blocks = true;             ///< the line's end after a block tag is no output
  bool lstrip_blocks = true;           ///< nor are blanks from the line's begin to a block tag
  bool keep_trailing_newline = false;  ///< nor is one line's end at the end of the text
};

/// What bounds one render; a template is data from elsewhere. Exceeding one is an error of code `limit`.
struct limits {
  std::size_t output_bytes = std::size_t{1} << 26;  ///< of text written
  std::size_t value_bytes = std::size_t{1} << 28;   ///< of strings, lists and dicts made on the way
  std::size_t steps = 20'000'000;                   ///< expressions and statements that run
  int depth = 1500;                                 ///< of expressions, statements and calls inside each other
};

/// A Jinja template, parsed once and rendered from any number of threads (https://jinja.palletsprojects.com, 3.1).
///
/// It has Jinja's expressions, statements, filters and tests, Python's methods of strings, lists and dicts, and what
/// Hugging Face's `transformers` adds: `tojson` without escapes, `raise_exception`, `strftime_now`, `generation`,
/// `break` and `continue`. What reads other files (`include`, `import`, `extends`) is no part of it. Integers have 64
/// bits.
class compiled_template {
 public:
  /// Parses `source`; `name` stands in errors. Throws `error` (malformed) with line, column, what was expected and
  /// found.
  explicit compiled_template(std::string_view source, std::string name = "template", syntax s = {});

  /// The text for the members of a JSON object as variables. Throws `error` with line and column.
  std::string render(std::string_view variables_json, const limits& bounds = {}) const;

 private:
  std::shared_ptr<const program> program_;
};

}  // namespace kiln::language::jinja
