#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>

#include "kiln/text/token.hpp"

namespace kiln::language::detail {

/// Finds what followed the last tokens of a sequence the last time that they came (prompt lookup, Saxena 2023).
class ngram_lookup {
 public:
  /// `size` counts the token that follows: the last `size` - 1 tokens are looked up.
  explicit ngram_lookup(std::size_t size) : context_(size - 1) {}

  /// At most `most` tokens that may follow the sequence, none where its last tokens are new. `chained` looks up the
  /// last tokens of what was found, too, until it is enough; `of_chain` counts what that added.
  tokens propose(std::span<const token> sequence, std::size_t most, bool chained, std::size_t& of_chain);

 private:
  void follow(std::span<const token> sequence);
  void add(std::size_t at);
  std::uint64_t hash(std::span<const token> context) const;
  /// Where the tokens that follow a context begin; the sequence's length where it is new.
  std::size_t find(std::span<const token> context) const;

  std::size_t context_;
  tokens seen_;
  std::unordered_map<std::uint64_t, std::size_t> after_;  ///< by a context's hash: what follows it the last time
};

}  // namespace kiln::language::detail
