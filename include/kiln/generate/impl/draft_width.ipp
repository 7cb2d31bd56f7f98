#include "kiln/generate/impl/draft_width.hpp"

namespace kiln::language::detail {

namespace {

constexpr std::int64_t most_width = 16, rounds_of_probe = 2, wrong_rounds = 3;
constexpr std::int64_t wait_after_success = 1, wait_after_failure = 6;
constexpr double weight = 0.25;  // of a new observation
constexpr double low_acceptance = 0.5, high_acceptance = 0.75;
constexpr double kept_rate = 0.97, hopeless_rate = 0.8;  // of the rate before

}  // namespace

void draft_width::estimate::add(double new_rate, double new_acceptance) {
  const double w = count++ == 0 ? 1 : weight;
  rate += w * (new_rate - rate);
  acceptance += w * (new_acceptance - acceptance);
}

draft_width::draft_width(const speculative_options& options)
    : adapts_(options.min_adaptive_k > 0),
      cools_(options.cooldown),
      least_(adapts_ ? options.min_adaptive_k : options.max_draft_tokens),
      width_(least_) {}

void draft_width::paused(speculative_stats& stats) {
  --pause_;
  ++stats.cooldown_steps;
}

void draft_width::observe(std::int64_t guessed, std::int64_t accepted, double ms, speculative_stats& stats) {
  wrong_ = accepted == 0 && width_ == least_ ? wrong_ + 1 : 0;
  if (cools_ && wrong_ == wrong_rounds) {
    wrong_ = 0, pause_ = 1;
    ++stats.cooldown_entries;
  }
  // a shorter guess than was asked for says nothing about the width
  if (adapts_ && guessed == width_ && ms > 0)
    adapt(static_cast<double>(accepted + 1) / ms, static_cast<double>(accepted) / static_cast<double>(guessed), stats);
}

void draft_width::adapt(double rate, double acceptance, speculative_stats& stats) {
  ++stats.adaptive_k_observations;
  now_.add(rate, acceptance);
  if (home_ > 0) return judge_probe(stats);
  if (wait_ > 0) {
    --wait_;
    return;
  }
  const std::int64_t to = now_.acceptance < low_acceptance && width_ > least_         ? width_ - 1
                          : now_.acceptance >= high_acceptance && width_ < most_width ? width_ + 1
                                                                                      : width_;
  if (to == width_) return;
  ++stats.adaptive_k_probes;
  home_ = width_, before_ = now_, now_ = {};
  move(to, stats);
}

void draft_width::judge_probe(speculative_stats& stats) {
  const bool hopeless = now_.rate < hopeless_rate * before_.rate;
  if (!hopeless && now_.count < rounds_of_probe) return;
  const bool kept = now_.rate >= kept_rate * before_.rate && (width_ < home_ || now_.acceptance >= high_acceptance);
  if (!kept) move(home_, stats), now_ = before_;
  wait_ = kept ? wait_after_success : wait_after_failure;
  home_ = 0;
}

void draft_width::move(std::int64_t to, speculative_stats& stats) {
  ++(to > width_ ? stats.adaptive_k_increases : stats.adaptive_k_decreases);
  width_ = to;
}

void draft_width::show(speculative_stats& stats) const {
  stats.effective_k = width_;
  stats.cooldown_remaining = pause_;
  stats.adaptive_k_throughput = now_.rate;
}

}  // namespace kiln::language::detail
