#include "kiln/generate/speculative_stats.hpp"

#include <array>
#include <string>

#include "kiln/core/error.hpp"

namespace kiln::language {

namespace {

struct row {
  std::string_view name;
  std::int64_t speculative_stats::*count = nullptr;
  double speculative_stats::*number = nullptr;
};
using s = speculative_stats;
constexpr std::string_view rate = "acceptance_rate";
constexpr row rows[] = {
    {"rounds", &s::rounds},
    {"completed_rounds", &s::completed_rounds},
    {"interrupted_rounds", &s::interrupted_rounds},
    {"active_rounds", &s::active_rounds},
    {"draft_tokens_proposed", &s::draft_tokens_proposed},
    {"draft_tokens_evaluated", &s::draft_tokens_evaluated},
    {"draft_tokens_accepted", &s::draft_tokens_accepted},
    {"correction_tokens", &s::correction_tokens},
    {"bonus_tokens", &s::bonus_tokens},
    {"tokens_emitted", &s::tokens_emitted},
    {"full_accept_rounds", &s::full_accept_rounds},
    {"partial_accept_rounds", &s::partial_accept_rounds},
    {"zero_accept_rounds", &s::zero_accept_rounds},
    {"draft_forward_passes", &s::draft_forward_passes},
    {"target_forward_passes", &s::target_forward_passes},
    {"target_verify_forward_passes", &s::target_verify_forward_passes},
    {"effective_k", &s::effective_k},
    {"adaptive_k_increases", &s::adaptive_k_increases},
    {"adaptive_k_decreases", &s::adaptive_k_decreases},
    {"adaptive_k_observations", &s::adaptive_k_observations},
    {"adaptive_k_probes", &s::adaptive_k_probes},
    {"cooldown_entries", &s::cooldown_entries},
    {"cooldown_steps", &s::cooldown_steps},
    {"cooldown_remaining", &s::cooldown_remaining},
    {"standard_fallback_steps", &s::standard_fallback_steps},
    {"ngram_lookup_hits", &s::ngram_lookup_hits},
    {"ngram_lookup_misses", &s::ngram_lookup_misses},
    {"ngram_lookup_tokens_proposed", &s::ngram_lookup_tokens_proposed},
    {"ngram_chained_tokens_proposed", &s::ngram_chained_tokens_proposed},
    {"total_draft_ms", nullptr, &s::total_draft_ms},
    {"total_target_ms", nullptr, &s::total_target_ms},
    {"adaptive_k_throughput", nullptr, &s::adaptive_k_throughput},
    {rate},
};

}  // namespace

double speculative_stats::acceptance_rate() const {
  return draft_tokens_evaluated == 0
             ? 0
             : static_cast<double>(draft_tokens_accepted) / static_cast<double>(draft_tokens_evaluated);
}

std::span<const std::string_view> speculative_stat_names() {
  static const auto names = [] {
    std::array<std::string_view, std::size(rows)> all;
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = rows[k].name;
    return all;
  }();
  return names;
}

double get_stat(const speculative_stats& of, std::string_view name) {
  std::string all;
  for (const row& r : rows) {
    if (r.name == name)
      return r.count ? static_cast<double>(of.*r.count) : r.number ? of.*r.number : of.acceptance_rate();
    all += (all.empty() ? "" : ", ") + std::string(r.name);
  }
  throw error(errc::not_found, "no speculative statistic '" + std::string(name) + "'; there are " + all);
}

}  // namespace kiln::language
