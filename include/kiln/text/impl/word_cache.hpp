#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "kiln/text/impl/vocabulary.hpp"
#include "kiln/text/token.hpp"

namespace kiln::language::detail {

/// The tokens of words seen before: a table of fixed size in which a word takes the place of the one before it. Texts
/// repeat their words, and a look costs a hash where merging costs a search for each pair of characters.
class word_cache {
 public:
  static constexpr std::size_t longest_word = 27, most_tokens = 8;

  word_cache() : slots_(std::size_t{1} << 14) {}

  /// Appends the tokens of a word and returns true where it is known.
  bool find(std::string_view word, tokens& out, std::uint64_t& hash) {
    hash = hash_bytes(word);
    const slot& s = slots_[hash & (slots_.size() - 1)];
    if (s.size != word.size() || std::memcmp(s.word.data(), word.data(), word.size()) != 0) return false;
    out.insert(out.end(), s.ids.begin(), s.ids.begin() + s.count);
    return true;
  }
  void put(std::string_view word, std::uint64_t hash, const token* ids, std::size_t count) {
    if (count > most_tokens) return;
    slot& s = slots_[hash & (slots_.size() - 1)];
    s.size = static_cast<std::uint8_t>(word.size());
    s.count = static_cast<std::uint8_t>(count);
    std::memcpy(s.word.data(), word.data(), word.size());
    std::copy(ids, ids + count, s.ids.begin());
  }

 private:
  // one line of the processor's cache
  struct alignas(64) slot {
    std::array<token, most_tokens> ids;
    std::uint8_t size = 0, count = 0;
    std::array<char, longest_word> word;
  };
  static_assert(sizeof(slot) == 64);

  std::vector<slot> slots_;
};

}  // namespace kiln::language::detail
