#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kiln/text/impl/pipeline.hpp"
#include "kiln/text/impl/regex.hpp"

// The steps of normalization, by the names and with the options that tokenizer.json has for them.

namespace kiln::language::detail {

enum class unicode_form { nfc, nfd, nfkc, nfkd };

/// What BERT's normalization does, step by step.
struct bert_normalization {
  bool clean_text = true, handle_chinese_chars = true, strip_accents = true, lowercase = true;
};

std::unique_ptr<normalizer> make_unicode_form(unicode_form form);
/// Character by character, by Unicode's full mapping.
std::unique_ptr<normalizer> make_lowercase();
/// Leaves out combining marks.
std::unique_ptr<normalizer> make_strip_accents();
std::unique_ptr<normalizer> make_bert_normalizer(bert_normalization what);
/// Leaves out control characters and makes spaces of spaces, as SentencePiece's `nmt` rules do.
std::unique_ptr<normalizer> make_nmt();
std::unique_ptr<normalizer> make_strip(bool left, bool right);
std::unique_ptr<normalizer> make_prepend(std::string prefix);
std::unique_ptr<normalizer> make_replace(regex pattern, std::string content);
std::unique_ptr<normalizer> make_byte_characters();
/// SentencePiece's compiled rules, grapheme by grapheme, as tokenizers applies them. Throws `error` (`malformed`).
std::unique_ptr<normalizer> make_precompiled(std::string_view charsmap);

/// Replaces the matches of a pattern.
void replace_matches(std::string& text, std::string& spare, const regex& pattern, std::string_view content,
                     regex_memory& memory);

}  // namespace kiln::language::detail
