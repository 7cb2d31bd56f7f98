#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kiln/generate/generator.hpp"

namespace kiln::language {

/// Changes of scores that servers of language models offer beside the search options.
struct logit_changes {
  std::vector<std::pair<token, float>> bias{};  ///< added to the score of a token; tokens outside the row are left out
  double presence_penalty = 0;                  ///< subtracted once for a token that was made
  double frequency_penalty = 0;                 ///< subtracted for each time that a token was made
  /// Bars tokens less likely than this part of the likeliest one's probability, at this temperature; 0: none.
  double min_p = 0, temperature = 1;

  bool are_any() const { return !bias.empty() || presence_penalty != 0 || frequency_penalty != 0 || min_p > 0; }
};
/// A rule that makes these changes, in their order. The first `prompt` tokens of a sequence were not made.
logits_rule changed_by(logit_changes changes, std::size_t prompt);

/// One rule after the other; null ones are left out.
logits_rule in_order(std::vector<logits_rule> rules);

/// A chosen token with the logarithm of its probability (base e), and the likeliest ones in order.
struct scored_token {
  token id = 0;
  float logprob = 0;
  std::vector<std::pair<token, float>> top{};
};

/// A token with its log-probability, and those of the `top` likeliest ones, by the scores of its place.
scored_token score_of(token t, std::span<const float> logits, std::size_t top);

/// Keeps the log-probabilities of a sequence's tokens as a model gives them, before any rule: `rule()` stands first.
class score_record {
 public:
  /// With the `top` likeliest tokens beside each chosen one.
  explicit score_record(std::size_t top);
  logits_rule rule();
  /// The tokens of a sequence that were chosen since the last call.
  std::vector<scored_token> take(std::span<const token> sequence);

 private:
  struct row;
  std::shared_ptr<row> row_;
};

}  // namespace kiln::language
