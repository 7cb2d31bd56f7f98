#pragma once

#include <memory>
#include <string>

#include "kiln/text/impl/pipeline.hpp"
#include "kiln/text/impl/vocabulary.hpp"

namespace kiln::language::detail {

/// The longest piece that fits, again and again (Schuster and Nakajima 2012, as BERT has it); a word with a part that
/// no piece fits, or of more characters than said, is unknown. `unknown` is below 0 where there is no such token.
std::unique_ptr<model> make_word_piece(const vocabulary& words, token unknown, std::string continuing_prefix,
                                       std::size_t most_characters);
/// A token for each word.
std::unique_ptr<model> make_word_level(const vocabulary& words, token unknown);

}  // namespace kiln::language::detail
