#include "kiln/generate/impl/speculation.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"
#include "kiln/core/stopwatch.hpp"
#include "kiln/generate/sampler.hpp"

namespace kiln::language::detail {

bool speculation::is_asked(const language_model& m, const speculative_options& o, std::int64_t rows) {
  check(o);
  if (o.ngram_size == 0 && !m.draft()) return false;
  const auto refuse = [](errc code, const std::string& what) { throw error(code, "speculative decoding: " + what); };
  if (o.ngram_size != 0 && m.draft())
    refuse(errc::invalid_argument, "ngram_size is " + std::to_string(o.ngram_size) +
                                       ", and the model has a draft model: guesses come from one of them");
  if (rows != 1)
    refuse(errc::invalid_argument, "expected one sequence, batch_size and num_beams 1, found " + std::to_string(rows));
  for (const language_model* each : {&m, m.draft().get()})
    if (each && !each->can_rewind())
      refuse(errc::unsupported, "a state of the model holds all tokens at once, and wrong guesses cannot be cut off");
  return true;
}

speculation::speculation(const language_model& m, const speculative_options& o) : model_(m), options_(o), width_(o) {
  if (o.ngram_size > 0)
    lookup_.emplace(static_cast<std::size_t>(o.ngram_size));
  else
    draft_state_ = m.draft()->new_state();
}

tokens speculation::guess(std::span<const token> sequence, std::size_t most) {
  if (!lookup_) return guess_by_draft(sequence, most);
  std::size_t of_chain = 0;
  tokens out = lookup_->propose(sequence, most, options_.ngram_chained_lookup, of_chain);
  ++(out.empty() ? stats_.ngram_lookup_misses : stats_.ngram_lookup_hits);
  stats_.ngram_lookup_tokens_proposed += static_cast<std::int64_t>(out.size());
  stats_.ngram_chained_tokens_proposed += static_cast<std::int64_t>(of_chain);
  return out;
}

tokens speculation::guess_by_draft(std::span<const token> sequence, std::size_t most) {
  const language_model& draft = *model_.draft();
  const auto differ = std::mismatch(draft_seen_.begin(), draft_seen_.end(), sequence.begin(), sequence.end()).first;
  // its last token is run again, so that its scores are there
  // no more than has run, should a run have failed
  const auto same = std::min({static_cast<std::size_t>(differ - draft_seen_.begin()), sequence.size() - 1,
                              static_cast<std::size_t>(draft_state_.length())});
  draft_state_.truncate(static_cast<std::int64_t>(same));
  draft_seen_.assign(sequence.begin(), sequence.end());
  draft_scores_.resize(static_cast<std::size_t>(draft.vocabulary_size()));
  tokens out;
  std::span<const token> left = sequence.subspan(same);
  while (out.size() < most) {
    draft.run(draft_state_, draft_memory_, left, 1, draft_scores_);
    ++stats_.draft_forward_passes;
    out.push_back(likeliest(draft_scores_));
    left = std::span(out).last(1);
    if (out.size() < most) draft_seen_.push_back(out.back());
  }
  return out;
}

tokens speculation::propose(std::span<const token> sequence, std::size_t room) {
  const std::size_t width = width_.next();
  if (width == 0) width_.paused(stats_);
  const stopwatch all;
  tokens out = std::min(width, room) == 0 ? tokens() : guess(sequence, std::min(width, room));
  guessing_ = all.ms();
  stats_.total_draft_ms += guessing_;
  return out;
}

void speculation::begin(tokens guesses, std::span<const float> scores, double ms) {
  ++stats_.target_forward_passes;
  stats_.total_target_ms += ms;
  guesses_ = std::move(guesses);
  if (guesses_.empty()) {
    ++stats_.standard_fallback_steps;
    return;
  }
  made_ = scores;
  ms_ = ms + guessing_;
  at_ = 0, active_ = true;
  ++stats_.rounds, ++stats_.target_verify_forward_passes;
  stats_.draft_tokens_proposed += static_cast<std::int64_t>(guesses_.size());
}

void speculation::run(sequence_state& state, workspace& w, std::span<const token> sequence, std::size_t room,
                      std::span<const argument> parameters, std::span<float> scores) {
  tokens guesses = propose(sequence, room);
  const stopwatch all;
  const auto left = sequence.subspan(static_cast<std::size_t>(state.length()));
  const std::size_t vocabulary = scores.size();
  if (guesses.empty()) {
    model_.run(state, w, left, 1, scores, parameters);
    return begin({}, {}, all.ms());
  }
  tokens fed(left.begin(), left.end());
  fed.insert(fed.end(), guesses.begin(), guesses.end());
  scores_.resize((guesses.size() + 1) * vocabulary);
  model_.run(state, w, fed, guesses.size() + 1, scores_, parameters);
  std::copy_n(scores_.begin(), vocabulary, scores.begin());
  begin(std::move(guesses), scores_, all.ms());
}

bool speculation::take(token chosen, sequence_state& state, std::span<float> scores) {
  if (!active_) return false;
  if (at_ == guesses_.size()) {
    ++stats_.bonus_tokens;
    finish(false);
    return false;
  }
  ++stats_.draft_tokens_evaluated;
  if (chosen != guesses_[at_]) {
    ++stats_.correction_tokens;
    state.truncate(state.length() - static_cast<std::int64_t>(guesses_.size() - at_));
    finish(false);
    return false;
  }
  ++stats_.draft_tokens_accepted;
  ++at_;
  const auto from = made_.begin() + static_cast<std::ptrdiff_t>(at_ * scores.size());
  std::copy_n(from, scores.size(), scores.begin());
  return true;
}

void speculation::finish(bool interrupted) {
  active_ = false;
  if (interrupted) {
    ++stats_.interrupted_rounds;
    return;
  }
  ++stats_.completed_rounds;
  stats_.tokens_emitted += static_cast<std::int64_t>(at_) + 1;
  ++(at_ == guesses_.size() ? stats_.full_accept_rounds
     : at_ == 0             ? stats_.zero_accept_rounds
                            : stats_.partial_accept_rounds);
  width_.observe(static_cast<std::int64_t>(guesses_.size()), static_cast<std::int64_t>(at_), ms_, stats_);
}

void speculation::interrupt(sequence_state& state, std::size_t length) {
  state.truncate(std::min(state.length(), static_cast<std::int64_t>(length)));
  if (active_) finish(true);
}

speculative_stats speculation::stats() const {
  speculative_stats out = stats_;
  out.active_rounds = active_ ? 1 : 0;
  width_.show(out);
  return out;
}

}  // namespace kiln::language::detail
