#include "kiln/generate/logit_rules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "kiln/generate/sampler.hpp"

namespace kiln::language {

namespace {

constexpr float never = -std::numeric_limits<float>::infinity();

template <class F> F* place_of(std::span<F> logits, token t) {
  return t >= 0 && static_cast<std::size_t>(t) < logits.size() ? &logits[static_cast<std::size_t>(t)] : nullptr;
}

void penalize(const logit_changes& c, std::span<const token> made, std::span<float> logits) {
  if (c.presence_penalty == 0 && c.frequency_penalty == 0) return;
  std::unordered_map<token, std::size_t> counts;
  for (const token t : made) ++counts[t];
  for (const auto& [t, count] : counts)
    if (float* const s = place_of(logits, t))
      *s -= static_cast<float>(c.presence_penalty + c.frequency_penalty * static_cast<double>(count));
}

// p_i / p_max = exp((s_i - s_max) / temperature)
void bar_unlikely(const logit_changes& c, std::span<float> logits) {
  if (c.min_p <= 0 || c.temperature <= 0) return;
  const auto least = logits[static_cast<std::size_t>(likeliest(logits))] + c.temperature * std::log(c.min_p);
  for (float& s : logits)
    if (s < least) s = never;
}

}  // namespace

logits_rule changed_by(logit_changes changes, std::size_t prompt) {
  return [c = std::move(changes), prompt](std::size_t, std::span<const token> sequence, std::span<float> logits) {
    for (const auto& [t, more] : c.bias)
      if (float* const s = place_of(logits, t)) *s += more;
    penalize(c, sequence.subspan(std::min(prompt, sequence.size())), logits);
    bar_unlikely(c, logits);
  };
}

logits_rule in_order(std::vector<logits_rule> rules) {
  std::erase_if(rules, [](const logits_rule& r) { return !r; });
  if (rules.empty()) return nullptr;
  if (rules.size() == 1) return std::move(rules.front());
  return [all = std::move(rules)](std::size_t row, std::span<const token> sequence, std::span<float> logits) {
    for (const logits_rule& r : all) r(row, sequence, logits);
  };
}

scored_token score_of(token chosen, std::span<const float> scores, std::size_t top) {
  const float most = scores[static_cast<std::size_t>(likeliest(scores))];
  double sum = 0;
  for (const float s : scores)
    if (!std::isnan(s)) sum += std::exp(static_cast<double>(s) - most);
  const auto logprob = [&](token t) {
    const float* const s = place_of(scores, t);
    return s ? static_cast<float>(static_cast<double>(*s) - most - std::log(sum)) : never;
  };
  scored_token out{chosen, logprob(chosen)};
  if (top == 0) return out;
  std::vector<token> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(top, order.size()));
  std::partial_sort(order.begin(), end, order.end(), [&](token a, token b) {
    const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    const bool nx = std::isnan(x), ny = std::isnan(y);
    return nx != ny ? ny : !nx && x != y ? x > y : a < b;
  });
  for (auto t = order.begin(); t != end; ++t) out.top.emplace_back(*t, logprob(*t));
  return out;
}

struct score_record::row {
  std::size_t top;
  std::vector<float> scores{};  // of the token that is not chosen yet
  std::size_t at = 0;           // its place
  std::vector<scored_token> made{};

  // The token after the scores is there.
  void settle(std::span<const token> sequence) {
    if (scores.empty() || sequence.size() <= at) return;
    made.push_back(kiln::language::score_of(sequence[at], scores, top));
    scores.clear();
  }
};

score_record::score_record(std::size_t top) : row_(std::make_shared<row>(row{top})) {}
logits_rule score_record::rule() {
  return [own = row_](std::size_t, std::span<const token> sequence, std::span<float> logits) {
    own->settle(sequence);
    own->scores.assign(logits.begin(), logits.end());
    own->at = sequence.size();
  };
}
std::vector<scored_token> score_record::take(std::span<const token> sequence) {
  row_->settle(sequence);
  return std::exchange(row_->made, {});
}

}  // namespace kiln::language
