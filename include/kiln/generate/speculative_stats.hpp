#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::language {

/// What speculative decoding did in a generator so far, in the words of ONNX Runtime GenAI's statistics.
struct speculative_stats {
  std::int64_t rounds = 0;              ///< runs of the model that checked guesses
  std::int64_t completed_rounds = 0;    ///< those whose tokens were all chosen
  std::int64_t interrupted_rounds = 0;  ///< those that appending, rewinding or an end token cut short
  std::int64_t active_rounds = 0;       ///< 1 while scores of a round are left
  std::int64_t draft_tokens_proposed = 0, draft_tokens_evaluated = 0, draft_tokens_accepted = 0;
  std::int64_t correction_tokens = 0;  ///< chosen instead of a guess
  std::int64_t bonus_tokens = 0;       ///< chosen after a round's last guess
  std::int64_t tokens_emitted = 0;     ///< of completed rounds: accepted, correction and bonus tokens
  std::int64_t full_accept_rounds = 0, partial_accept_rounds = 0, zero_accept_rounds = 0;
  std::int64_t draft_forward_passes = 0, target_forward_passes = 0, target_verify_forward_passes = 0;
  std::int64_t effective_k = 0;  ///< tokens that the next round guesses
  std::int64_t adaptive_k_increases = 0, adaptive_k_decreases = 0, adaptive_k_observations = 0, adaptive_k_probes = 0;
  std::int64_t cooldown_entries = 0, cooldown_steps = 0, cooldown_remaining = 0;
  std::int64_t standard_fallback_steps = 0;  ///< steps without a guess
  std::int64_t ngram_lookup_hits = 0, ngram_lookup_misses = 0;
  std::int64_t ngram_lookup_tokens_proposed = 0, ngram_chained_tokens_proposed = 0;
  double total_draft_ms = 0, total_target_ms = 0;  ///< guessing, and running the model
  double adaptive_k_throughput = 0;                ///< tokens a millisecond, smoothed
  double acceptance_rate() const;                  ///< of the guesses that were evaluated; 0 before any was
};

/// The names of all values, `acceptance_rate` among them.
std::span<const std::string_view> speculative_stat_names();
/// A value by its name; `not_found` error that lists the names.
double get_stat(const speculative_stats& of, std::string_view name);

}  // namespace kiln::language
