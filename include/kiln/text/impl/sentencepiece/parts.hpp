#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "kiln/text/impl/pipeline.hpp"
#include "kiln/text/impl/sentencepiece/model_file.hpp"
#include "kiln/text/impl/vocabulary.hpp"

// What SentencePiece's models have and tokenizer.json's have not.

namespace kiln::language::detail {

/// User-defined symbols with their numbers.
using defined_symbols = std::vector<std::pair<std::string_view, token>>;

/// SentencePiece's normalization: the compiled rules, to which user-defined symbols are not subject, whitespace, and
/// the space in front of a text or after it. `only_at_start`: a part of a text that follows a special token has none.
std::unique_ptr<splitter> make_sentencepiece_rewrite(const sentencepiece_file::normalizer_spec& spec,
                                                     bool whitespace_as_suffix, bool only_at_start,
                                                     const defined_symbols& symbols);

/// Finds user-defined symbols, the leftmost, of those the longest; `rest` makes tokens of what is between them.
std::unique_ptr<model> make_symbol_finder(const defined_symbols& symbols, std::unique_ptr<model> rest);

/// A token for each character, or for each word, which begins with U+2581. What the vocabulary lacks is bytes where
/// `fallback` is given, else unknown, and one token for those side by side.
std::unique_ptr<model> make_unit_model(const vocabulary& words, bool of_words, token unknown,
                                       const std::array<token, 256>* fallback);

}  // namespace kiln::language::detail
