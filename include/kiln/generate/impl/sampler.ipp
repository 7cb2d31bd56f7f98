#include "kiln/generate/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_set>

namespace kiln::language {

namespace {

constexpr float never = std::numeric_limits<float>::lowest();

// Tokens that followed an earlier appearance of the sequence's last n - 1 tokens.
void ban_ngrams(std::span<float> logits, std::span<const token> sequence, std::size_t n) {
  if (sequence.size() + 1 < n || n == 0) return;
  const auto last = sequence.last(n - 1);
  for (std::size_t at = 0; at + n <= sequence.size(); ++at)
    if (std::equal(last.begin(), last.end(), sequence.begin() + static_cast<std::ptrdiff_t>(at)))
      if (const auto next = static_cast<std::size_t>(sequence[at + n - 1]); next < logits.size()) logits[next] = never;
}

void penalize_repetition(std::span<float> logits, std::span<const token> sequence, float penalty) {
  std::unordered_set<token> seen;
  for (const token t : sequence) {
    if (static_cast<std::size_t>(t) >= logits.size() || !seen.insert(t).second) continue;
    float& s = logits[static_cast<std::size_t>(t)];
    s = s < 0 ? s * penalty : s / penalty;
  }
}

}  // namespace

token likeliest(std::span<const float> logits) {
  // blocks in lanes first, then the place in the best block
  constexpr std::size_t lanes = 16, block = 256;
  float greatest = -std::numeric_limits<float>::infinity();
  std::size_t from = 0;
  const std::size_t whole = logits.size() / block * block;
  for (std::size_t k = 0; k < whole; k += block) {
    const float* const x = logits.data() + k;
    float most[lanes];
    std::fill_n(most, lanes, greatest);
    for (std::size_t i = 0; i < block; i += lanes)
      for (std::size_t l = 0; l < lanes; ++l) most[l] = x[i + l] > most[l] ? x[i + l] : most[l];  // not NaN
    if (const float top = *std::max_element(most, most + lanes); top > greatest) greatest = top, from = k;
  }
  std::size_t best = from;
  for (std::size_t k = from; k < std::min(from + block, whole) && !(logits[best] == greatest); ++k) best = k;
  if (greatest == -std::numeric_limits<float>::infinity()) best = 0;
  for (std::size_t k = whole; k < logits.size(); ++k)
    if (logits[k] > greatest) greatest = logits[k], best = k;
  return static_cast<token>(best);
}

void apply_rules(std::span<float> logits, std::span<const token> sequence, std::span<const token> ends,
                 const search_options& options) {
  if (static_cast<std::int64_t>(sequence.size()) < options.min_length)
    for (const token t : ends)
      if (static_cast<std::size_t>(t) < logits.size()) logits[static_cast<std::size_t>(t)] = never;
  if (options.repetition_penalty != 1)
    penalize_repetition(logits, sequence, static_cast<float>(options.repetition_penalty));
  if (options.no_repeat_ngram_size > 0)
    ban_ngrams(logits, sequence, static_cast<std::size_t>(options.no_repeat_ngram_size));
}

sampler::sampler(const search_options& options)
    : greedy_(!options.do_sample || options.top_k == 1 || options.temperature == 0),
      top_k_(static_cast<std::size_t>(options.top_k)),
      top_p_(options.top_p),
      temperature_(options.temperature),
      random_(options.random_seed < 0 ? std::random_device()() : static_cast<std::uint32_t>(options.random_seed)) {}

token sampler::choose(std::span<const float> logits) { return greedy_ ? likeliest(logits) : draw(logits); }

void sampler::sort_first(std::size_t count) {
  const auto before = [](const scored& a, const scored& b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
  };
  const auto end = order_.begin() + static_cast<std::ptrdiff_t>(count);
  if (count < order_.size()) std::nth_element(order_.begin(), end, order_.end(), before);
  std::sort(order_.begin(), end, before);
}

token sampler::draw(std::span<const float> logits) {
  order_.clear();
  float greatest = -std::numeric_limits<float>::infinity();
  for (std::size_t k = 0; k < logits.size(); ++k) {
    if (std::isnan(logits[k])) continue;
    order_.push_back({logits[k], static_cast<token>(k)});
    greatest = std::max(greatest, logits[k]);
  }
  if (order_.empty()) return likeliest(logits);
  const auto weight = [&](const scored& s) { return std::exp((double(s.score) - greatest) / temperature_); };
  std::size_t count = top_k_ > 0 ? std::min(top_k_, order_.size()) : order_.size();
  if (count < order_.size()) {
    sort_first(count);
    order_.resize(count);
  }
  weights_.clear();
  for (const scored& s : order_) weights_.push_back(weight(s));
  if (top_p_ > 0 && top_p_ < 1) {
    // the likeliest tokens alone are put in order: few are, as a rule, before the wanted probability is reached
    const double wanted = top_p_ * std::accumulate(weights_.begin(), weights_.end(), 0.0);
    double reached = 0;
    for (std::size_t sorted = 0, next = 0;; ++next) {
      if (next == count || reached >= wanted) {
        count = next;
        break;
      }
      if (next == sorted) {
        sorted = std::min(count, sorted == 0 ? 64 : 4 * sorted);
        sort_first(sorted);
        for (std::size_t k = 0; k < sorted; ++k) weights_[k] = weight(order_[k]);
      }
      reached += weights_[next];
    }
  }
  std::discrete_distribution<std::size_t> among(weights_.begin(),
                                                weights_.begin() + static_cast<std::ptrdiff_t>(count));
  return order_[among(random_)].id;
}

}  // namespace kiln::language
