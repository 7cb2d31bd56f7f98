#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/text/impl/double_array.hpp"
#include "kiln/text/impl/pipeline.hpp"
#include "kiln/text/token.hpp"

namespace kiln::language::detail {

/// A token that is found in the text itself, before the model sees the rest.
struct added_token {
  std::string content;
  token id = -1;
  bool special = false;
  bool single_word = false;  ///< not within a word
  bool lstrip = false;       ///< takes the whitespace in front of it
  bool rstrip = false;       ///< takes the whitespace after it
  bool normalized = false;   ///< is found in the normalized text
  bool in_text = true;       ///< is found in texts at all; SentencePiece's control symbols are not
};

/// A part of a text: a token, or text where `id` is below 0.
struct text_part {
  token id = -1;
  std::size_t begin = 0, end = 0;
};

/// The added tokens of one kind, and where they are in a text: the leftmost, of those the longest.
class token_finder {
 public:
  token_finder() = default;
  /// `spellings`: what each token looks like in the text that is searched; one that is empty is never found.
  token_finder(const std::vector<added_token>& all, const std::vector<std::string>& spellings);

  bool empty() const { return trie_.empty(); }
  /// Calls `part(text_part)` for each part of a text, in order; text parts are not empty.
  template <class F> void split(std::string_view text, F&& part) const {
    std::size_t done = 0;
    match m;
    for (std::size_t from = 0; next(text, from, done, m); from = m.resume) {
      if (done < m.begin) part(text_part{-1, done, m.begin});
      part(text_part{m.id, m.begin, m.end});
      done = m.end;
    }
    if (done < text.size()) part(text_part{-1, done, text.size()});
  }

 private:
  struct rules {
    token id;
    bool single_word, lstrip, rstrip;
  };
  struct match {
    token id = -1;
    std::size_t begin = 0, end = 0, resume = 0;
  };
  bool next(std::string_view text, std::size_t from, std::size_t done, match& out) const;

  double_array trie_;
  std::vector<rules> rules_;
  std::array<bool, 256> first_{};
  int only_first_ = -1;  // where all begin with one byte
};

/// All added tokens of a tokenizer.
class added_tokens {
 public:
  /// Adds a token; one with the same content or number takes the other's place.
  void put(added_token t);
  /// Call it once all are put: `steps` are the normalization.
  void finish(const std::vector<std::unique_ptr<normalizer>>& steps);

  const std::vector<added_token>& all() const { return all_; }
  const added_token* find(token id) const;
  const added_token* find(std::string_view content) const;

  token_finder verbatim;    ///< of tokens that are found in the text as it comes
  token_finder normalized;  ///< of tokens that are found in the normalized text

 private:
  std::vector<added_token> all_;
  std::unordered_map<token, std::size_t> by_id_;
  std::map<std::string, std::size_t, std::less<>> by_content_;
};

}  // namespace kiln::language::detail
