#pragma once
#include <memory>
#include <span>
#include <string>

#include "kiln/text/token.hpp"

namespace kiln::language {

class tokenizer;

namespace guidance {
struct token_trie;
}

/// The bytes of a model's tokens, sorted once for the guides of all requests. Immutable and cheap to copy.
class guide_vocabulary {
 public:
  /// `bytes[id]` are what a token adds to a text; a token without any is never allowed, unless it is one of
  /// `end_tokens`, which end a text and whose bytes do not count. Throws `error` (`invalid_argument`) for end tokens
  /// outside the vocabulary.
  guide_vocabulary(std::span<const std::string> bytes, const tokens& end_tokens);
  /// The tokens of a tokenizer. Its special ones have no bytes, but grammars may name them; `size` (of the model's
  /// logits) may be larger than its vocabulary, 0 is that.
  static guide_vocabulary of(const tokenizer& t, const tokens& end_tokens, std::size_t size = 0);

  /// Tokens, and so bits of a mask.
  std::size_t size() const;
  const std::shared_ptr<const guidance::token_trie>& trie() const { return trie_; }

 private:
  guide_vocabulary() = default;

  std::shared_ptr<const guidance::token_trie> trie_;
};

}  // namespace kiln::language
