#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kiln/text/impl/double_array.hpp"
#include "kiln/text/impl/pipeline.hpp"
#include "kiln/text/impl/vocabulary.hpp"

namespace kiln::language::detail {

/// The memory of the search for the best path.
struct unigram_memory {
  struct node {
    double score;
    std::int32_t begin;  // of the token that ends here; -1 where none does
    token id;
  };
  std::vector<node> nodes;
  tokens reversed;
};

/// The unigram language model (Kudo 2018): the tokens whose scores have the greatest sum, found by Viterbi's algorithm
/// as SentencePiece does.
class unigram final : public model {
 public:
  struct settings {
    token unknown = -1;
    bool byte_fallback = false;
    bool fuse_unknown = true;
    double unknown_score = 0;
    bool as_sentencepiece = false;  ///< sums have 24 bits, and an unknown part is not looked up as a whole
  };
  struct scored {
    token id;
    double score;
  };

  unigram(const vocabulary& words, settings s, const std::vector<scored>& found_in_text);

  void encode(std::string_view text, tokens& out, scratch& memory) const override;

 private:
  void search(std::string_view text, unigram_memory& m) const;
  void append_unknown(std::string_view text, tokens& reversed) const;

  const vocabulary& words_;
  settings settings_;
  double_array trie_;
  std::vector<double> scores_;  // by token
  std::array<token, 256> fallback_{};
  bool has_fallback_ = false;
};

}  // namespace kiln::language::detail
