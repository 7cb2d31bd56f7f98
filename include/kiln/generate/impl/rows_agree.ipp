#include <algorithm>
#include <cmath>

#include "kiln/generate/impl/model_plan.hpp"

namespace kiln::language {

namespace {

// From the least to the greatest logit, without those that bar a token.
float range_of(const std::vector<float>& logits) {
  constexpr float barred = 1e4F;
  float least = barred, most = -barred;
  for (const float x : logits)
    if (std::abs(x) < barred) least = std::min(least, x), most = std::max(most, x);
  return std::max(0.0F, most - least);
}

}  // namespace

// Whether sequences that share runs have the logits that each has alone, in a prompt and a step after it.
bool language_model::rows_agree() const try {
  const auto each = static_cast<std::size_t>(plan_->vocabulary);
  std::vector<tokens> all;
  const auto longest = static_cast<std::size_t>(std::min<std::int64_t>(plan_->context, 18));
  for (const std::size_t wanted : {9, 1, 6, 17}) {
    const std::size_t length = std::min(wanted, longest - 1);
    if (length == 0) return true;  // one token is no sequence
    tokens own;
    for (std::size_t k = 0; k <= length; ++k)  // the last one is the step's
      own.push_back(static_cast<token>((7919 * k + 104729 * length + 3) % each));
    all.push_back(own);
  }
  workspace w;
  std::vector<sequence_state> states;
  for (std::size_t k = 0; k < all.size(); ++k) states.push_back(new_state());
  std::vector<float> together(all.size() * each), alone(each);
  std::vector<std::vector<float>> wanted[2];
  for (const tokens& t : all) {
    sequence_state state = new_state();
    for (const bool is_step : {false, true}) {
      run(state, w, is_step ? std::span(t).last(1) : std::span(t).first(t.size() - 1), 1, alone);
      wanted[is_step].push_back(alone);
    }
  }
  for (const bool is_step : {false, true}) {
    std::vector<row_run> runs;
    for (std::size_t k = 0; k < all.size(); ++k)
      runs.push_back(
          {&states[k],
           is_step ? std::span<const token>(all[k]).last(1) : std::span<const token>(all[k]).first(all[k].size() - 1),
           1});
    run(w, runs, together);
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::vector<float>& one = wanted[is_step][k];
      const float tolerance = 3e-3F * range_of(one);  // sums go in another order
      for (std::size_t i = 0; i < each; ++i)
        if (!(std::abs(together[k * each + i] - one[i]) <= tolerance)) return false;
    }
  }
  return true;
} catch (const error&) {
  return false;  // a run that is not possible says nothing
}

}  // namespace kiln::language
