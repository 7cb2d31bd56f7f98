#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kiln/text/impl/pipeline.hpp"
#include "kiln/text/impl/vocabulary.hpp"

namespace kiln::language::detail {

/// Which pairs of tokens become one, and in which order: the lowest rank first.
class merge_table {
 public:
  struct merge {
    std::uint32_t rank = none;
    token result = -1;
  };
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  explicit merge_table(std::size_t expected = 0);
  /// Of two merges of one pair the last counts, as in a dictionary.
  void put(token left, token right, merge m);
  merge find(token left, token right) const {
    for (std::size_t at = start(left, right);; at = (at + 1) & (slots_.size() - 1)) {
      const slot& s = slots_[at];
      if (s.left == left && s.right == right) return s.what;
      if (s.left < 0) return {};
    }
  }

 private:
  struct slot {
    token left = -1, right = -1;
    merge what;
  };
  std::size_t start(token left, token right) const {
    const std::uint64_t pair =
        std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
    return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> shift_;
  }
  void grow();

  std::vector<slot> slots_;
  std::size_t used_ = 0;
  unsigned shift_ = 0;
};

/// The memory of merging.
struct bpe_memory {
  struct link {
    std::int32_t before, after;  // in the list of symbols
  };
  struct candidate {
    std::uint32_t rank;
    std::int32_t at;
    token result;
    // a heap has its greatest entry in front
    friend bool operator<(const candidate& a, const candidate& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
    }
  };
  tokens symbols;
  std::vector<merge_table::merge> merges;
  std::vector<link> links;
  std::vector<candidate> heap;
  std::unordered_map<token, std::pair<token, token>> halves;  // that last became an unused token
  tokens open;
};

/// Byte-pair encoding (Sennrich et al. 2016): characters, or bytes, become tokens, and pairs of tokens one in the order
/// of their ranks.
class bpe final : public model {
 public:
  struct settings {
    bool raw_bytes = false;  ///< texts are bytes that the vocabulary spells in GPT-2's alphabet
    bool byte_fallback = false, fuse_unknown = false, ignore_merges = false;
    std::optional<std::string> unknown, continuing_prefix, end_suffix;
    std::vector<bool> unused;  ///< tokens that come apart again in the end; empty where there are none
  };
  /// Two spellings that become one. Of pairs with one rank the leftmost in the text comes first.
  struct rule {
    std::string_view left, right;
    std::uint32_t rank;
  };

  /// Throws `error` (`malformed`) for what the vocabulary
  /// lacks.
  bpe(const vocabulary& words, settings s, const std::vector<rule>& merges);

  void encode(std::string_view text, tokens& out, scratch& memory) const override;

 private:
  void set_symbols();
  void encode_word(std::string_view word, tokens& out, scratch& memory) const;
  token find(std::string_view spelling) const;
  void read_symbols(std::string_view word, tokens& symbols) const;
  void merge_short(bpe_memory& m) const;
  void merge_long(bpe_memory& m) const;
  merge_table::merge propose(token left, token right, bpe_memory& m) const;
  void take_apart(bpe_memory& m, tokens& out) const;

  const vocabulary& words_;
  settings settings_;
  merge_table merges_;
  vocabulary raw_words_;  // spellings as bytes, where whole words are looked up
  std::array<token, 256> byte_symbol_{}, fallback_{};
  token unknown_ = -1;
  bool has_fallback_ = false;
  bool splits_at_marks_ = false;  // no merge crosses the boundary in front of a word's U+2581
};

}  // namespace kiln::language::detail
