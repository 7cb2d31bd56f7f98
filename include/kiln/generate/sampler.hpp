#pragma once
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "kiln/generate/search_options.hpp"
#include "kiln/text/token.hpp"

namespace kiln::language {

/// Chooses one token of a row of logits, as the options say: the likeliest one, or one drawn among the `top_k`
/// likeliest, or among the likeliest of total probability `top_p`, or both (k first, then p of what is left).
class sampler {
 public:
  explicit sampler(const search_options& options);
  /// NaN and -infinity are never chosen where another score is there; of equal scores the lowest token is.
  token choose(std::span<const float> logits);

 private:
  struct scored {
    float score;
    token id;
  };
  token draw(std::span<const float> logits);
  /// Puts the likeliest `count` tokens first, in order.
  void sort_first(std::size_t count);
  bool greedy_ = true;
  std::size_t top_k_ = 0;
  double top_p_ = 0, temperature_ = 1;
  std::mt19937 random_;
  std::vector<scored> order_;
  std::vector<double> weights_;
};

/// The first token with the greatest score.
token likeliest(std::span<const float> logits);

/// Rewrites a row of logits as the options say, in GenAI's order: no token of `ends` before `min_length`, the
/// repetition penalty, no n-gram twice. `sequence` is the whole row so far, prompt included.
void apply_rules(std::span<float> logits, std::span<const token> sequence, std::span<const token> ends,
                 const search_options& options);

}  // namespace kiln::language
