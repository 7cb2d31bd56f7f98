#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kiln/text/impl/pipeline.hpp"
#include "kiln/text/impl/regex.hpp"

// The steps of pre-tokenization, by the names and with the options that tokenizer.json has for them.

namespace kiln::language::detail {

/// What becomes of the matches of a pattern.
enum class split_behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Which pieces begin with U+2581.
enum class prepend_scheme { always, never, first };

std::unique_ptr<splitter> make_split(regex pattern, split_behavior behavior, bool invert);

/// Splits by GPT-2's expression; `to_characters`: bytes become the characters that the vocabulary spells them with.
std::unique_ptr<splitter> make_byte_level(bool add_prefix_space, bool use_regex, bool to_characters);
std::unique_ptr<splitter> make_metaspace(std::string mark, prepend_scheme scheme, bool split);

/// Pieces of letters or of punctuation, without the whitespace.
std::unique_ptr<splitter> make_whitespace();
std::unique_ptr<splitter> make_whitespace_split();
std::unique_ptr<splitter> make_delimiter(std::int32_t character);
std::unique_ptr<splitter> make_punctuation(split_behavior behavior);
std::unique_ptr<splitter> make_digits(bool individual);
/// Isolates each mark of punctuation, and leaves whitespace out, as BERT does.
std::unique_ptr<splitter> make_bert_splitter();
/// Splits where the script changes; Han, Hiragana and Katakana are one.
std::unique_ptr<splitter> make_unicode_scripts();
/// Pieces of so many characters.
std::unique_ptr<splitter> make_fixed_length(std::size_t characters);

}  // namespace kiln::language::detail
