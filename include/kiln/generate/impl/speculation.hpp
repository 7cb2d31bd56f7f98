#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kiln/generate/impl/draft_width.hpp"
#include "kiln/generate/impl/ngram_lookup.hpp"
#include "kiln/generate/language_model.hpp"

namespace kiln::language::detail {

/// Runs a model over guesses of the next tokens, so that the scores of several positions are there after one run
/// (speculative decoding, Leviathan et al. 2023). Tokens are then chosen from the scores one by one, in the way they
/// always are; as long as they are the guessed ones, the next scores are there already. So guesses change when scores
/// are computed, and never which.
class speculation {
 public:
  /// Whether these options ask for it. Errors: `invalid_argument` where they and the model do not go together,
  /// `unsupported` for a model whose states cannot be cut.
  static bool is_asked(const language_model& m, const speculative_options& o, std::int64_t rows);
  speculation(const language_model& m, const speculative_options& o);

  /// Runs what a state lacks of a sequence and at most `room` guesses, and writes the scores of the next token.
  void run(sequence_state& state, workspace& w, std::span<const token> sequence, std::size_t room,
           std::span<const argument> parameters, std::span<float> scores);
  /// The same in two parts, for who runs the model over several sequences: at most `room` guesses, and that a run over
  /// them, which took so long, made these scores, f32[guesses + 1, vocabulary], of the last token and each guess. The
  /// scores have to stay until the next run.
  tokens propose(std::span<const token> sequence, std::size_t room);
  void begin(tokens guesses, std::span<const float> scores, double ms);
  /// A token was chosen. Where it was guessed, writes the scores of the one after it and says so; else the state is as
  /// long as the sequence without the token.
  bool take(token chosen, sequence_state& state, std::span<float> scores);
  /// Cuts a state to a sequence that was not continued by `take`.
  void interrupt(sequence_state& state, std::size_t length);
  speculative_stats stats() const;

 private:
  tokens guess(std::span<const token> sequence, std::size_t most);
  tokens guess_by_draft(std::span<const token> sequence, std::size_t most);
  void finish(bool interrupted);

  const language_model& model_;
  speculative_options options_;
  draft_width width_;
  std::optional<ngram_lookup> lookup_;
  // of the draft model
  sequence_state draft_state_;
  workspace draft_memory_;
  tokens draft_seen_;
  std::vector<float> draft_scores_;
  // of the round
  tokens guesses_;
  std::vector<float> scores_;    ///< of all positions, where they are its own
  std::span<const float> made_;  ///< of all positions
  std::size_t at_ = 0;           ///< guesses that were right
  bool active_ = false;
  double ms_ = 0, guessing_ = 0;
  speculative_stats stats_;
};

}  // namespace kiln::language::detail
