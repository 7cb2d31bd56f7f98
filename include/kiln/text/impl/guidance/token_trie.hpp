#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/text/token.hpp"

namespace kiln::language::guidance {

/// The tokens of a vocabulary by their bytes, in the order of a walk from each node to its first child.
struct token_trie {
  struct node {
    std::uint8_t byte;          // that leads here
    std::uint16_t depth;        // bytes before it
    std::uint32_t next;         // the node after all below this one
    std::uint32_t first, last;  // its tokens in `by_bytes`
  };

  token_trie(std::span<const std::string> bytes, const tokens& end_tokens,
             std::map<std::string, token, std::less<>> special_tokens = {});
  /// The longest token that a text begins with, below 0 where there is none, and whether a token begins with the text
  /// and goes on.
  std::pair<token, bool> longest(std::string_view text) const;

  std::vector<node> nodes;
  tokens by_bytes;                 // tokens with bytes, sorted by them
  std::vector<std::string> texts;  // by token; empty for end tokens
  std::vector<char> ends;          // whether a token is an end token
  tokens end_tokens;
  std::map<std::string, token, std::less<>> specials;  // by spelling; their bytes are those of `special_bytes`
};

/// Bytes that stand for a special token: no text has them.
std::string special_bytes(token id);

}  // namespace kiln::language::guidance
