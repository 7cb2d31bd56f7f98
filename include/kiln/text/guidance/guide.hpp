#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kiln/text/guidance/vocabulary.hpp"

namespace kiln::language {

namespace guidance {
struct automaton;
class machine;
struct lazy_states;
}  // namespace guidance

/// Says which tokens may follow, so that the finished text belongs to a language. A copy continues on its own, such as
/// from where a sequence forks or is rewound to. One thread at a time for a guide; its copies, which share what was
/// computed, may be in other threads.
class guide {
 public:
  /// Texts that a regular expression matches as a whole.
  ///
  /// The syntax is what Python's `re` and Rust's `regex` share, with the meaning of Python's for texts: literals,
  /// escapes
  /// (`\n`, `\x41`, `\u00e9`, `\.`), `.`, classes with ranges, `\d \w \s` and their negations by Unicode, groups with
  /// or without a name, `|`, `* + ? {n} {n,} {n,m}` (lazy ones match the same texts), `^` and `$` at the ends. Throws
  /// `error` with the position in characters: `malformed`, `unsupported`, `limit`.
  static guide regex(const guide_vocabulary& v, std::string_view pattern);

  /// A regular expression of exactly these texts, character by character. Throws `error` (`invalid_argument`) where
  /// there is none.
  static std::string expression_of(std::span<const std::string> texts);

  /// Texts of the rule `start` of a grammar in Lark's syntax, as llguidance extends it.
  ///
  /// Rules (lower case) and terminals (upper case) of strings (`"a"`, `"a"i`), ranges (`"a".."z"`), regular expressions
  /// (`/…/` with flags i, s, m, u), groups, `|`, `[…]`, `* + ? ~n ~n..m {n,m}`; of terminals also `&` and, before one,
  /// `~`, which has the texts that it does not match; `[lazy]` and `[suffix="…"]` after a name: its shortest texts;
  /// `%regex {"substring_chars": "…"}`, `substring_words`, `substring_chunks`; special tokens `<|name|>` and
  /// `<[3,5-9]>` in rules; `%ignore`, which may stand before each terminal of a rule; `%import common.NAME`; `%json
  /// {…}`, a schema; comments. Rules may begin with themselves. Priorities, aliases and captures are read and say
  /// nothing. Throws `error` with the line: `malformed`, `not_found`, `unsupported`, `limit`.
  static guide lark(const guide_vocabulary& v, std::string_view grammar);

  /// JSON texts of values that a schema (https://json-schema.org, 2020-12) allows.
  ///
  /// Keywords: `type`, `properties`, `required`, `additionalProperties`, `patternProperties` (one pattern, alone),
  /// `minProperties`, `maxProperties`, `items`, `prefixItems`, `minItems`, `maxItems`, `uniqueItems` (of an `enum` of
  /// at most 10 values), `enum`, `const`, `anyOf`, `oneOf` (of alternatives that types or constants tell apart),
  /// `allOf` and what stands beside `$ref`, `anyOf` or `oneOf` (joined keyword by keyword), `not`, `if`, `then` and
  /// `else` (conditions of types, strings and other constants but numbers, bounds, `properties`, `required`, and those
  /// joined),
  /// `$ref` within the document, `minLength`, `maxLength`, `pattern`, `format` (date, time, date-time, duration, email,
  /// hostname, ipv4, ipv6, uuid, uri), `minimum`, `maximum` and the exclusive ones (whole for a "number"),
  /// `multipleOf` (an integer to 1000), and annotations. Properties come in their order, others after
  /// them. Strings escape what they must and nothing else; exponents have at most two digits. Around `{ } [ ] ,` there
  /// may be one space, or a line's end and up to 40 spaces; after `:` a space; nothing before and after the value.
  /// Throws `error` with the keyword and its place: `malformed`, `unsupported`, `not_found`, `limit`.
  static guide json_schema(const guide_vocabulary& v, std::string_view schema);

  /// A guide by GenAI's words for its kind: "json_schema", "regex" or "lark_grammar"; another one is a `not_found`
  /// error.
  static guide of(std::string_view kind, const guide_vocabulary& v, std::string_view text);

  /// Sets bit `id % 32` of word `id / 32` where the token may follow, and clears the others: tokens whose bytes some
  /// text of the language continues with, and end tokens exactly where the text is one. After an end token, end tokens.
  /// A vocabulary that lacks bytes may leave none. Throws `error`: `invalid_argument` where words are missing, `limit`
  /// for texts that can be read in more than 100000 ways.
  void mask(std::span<std::uint32_t> bits) const;
  /// Appends a token. Throws `error` (`invalid_argument`) for one that the mask bars; the guide is then as before.
  void advance(token id);
  /// Appends a token where the mask allows it, and says whether it did.
  bool try_advance(token id) { return append(id).empty(); }
  /// Tokens that follow whatever is chosen, where the language leaves no choice of bytes: the longest ones, and none
  /// of which a longer token could take the place. They may be appended one after the other.
  tokens forced() const;
  /// Whether the text so far belongs to the language.
  bool is_accepting() const;
  /// Whether an end token was appended.
  bool is_finished() const { return finished_; }
  /// Tokens of its vocabulary, and so bits of a mask.
  std::size_t vocabulary_size() const;
  /// Back to the empty text.
  void reset();

 private:
  guide(const guide_vocabulary& v, guidance::automaton language);
  std::string_view append(token id);  // why not; empty where it did

  std::shared_ptr<guidance::machine> machine_;
  std::shared_ptr<guidance::lazy_states> states_;
  std::int32_t state_ = 0;
  bool finished_ = false;
};

}  // namespace kiln::language
