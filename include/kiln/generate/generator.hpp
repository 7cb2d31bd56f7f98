#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/generate/language_model.hpp"
#include "kiln/generate/speculative_stats.hpp"
#include "kiln/generate/text_end.hpp"

namespace kiln::language {

struct adapter;
class adapters;

/// Bars tokens before one is chosen: writes scores that are never chosen (-infinity) into a row of logits.
using logits_rule = std::function<void(std::size_t row, std::span<const token> sequence, std::span<float> logits)>;

/// Tokens that follow a sequence without a choice; may be none.
using forced_rule = std::function<tokens(std::span<const token> sequence)>;

/// Continues sequences token by token: ONNX Runtime GenAI's `Generator`. One thread at a time; any number of generators
/// share a model.
class generator {
 public:
  /// The options replace those of the model's configuration. Errors: those of `check`; with speculative decoding,
  /// `invalid_argument` for more than one sequence, `unsupported` for a model that cannot forget wrong guesses.
  generator(std::shared_ptr<const language_model> model, search_options search);
  generator(std::shared_ptr<const language_model> model, search_options search, const speculative_options& ahead);
  explicit generator(std::shared_ptr<const language_model> model);
  generator(generator&&) noexcept;
  generator& operator=(generator&&) noexcept;
  ~generator();

  /// Appends the same number of tokens to each of `batch_size` sequences, one after the other, and runs them. For more
  /// than one sequence only once, and with beams only before the first token is made.
  void append_tokens(std::span<const token> tokens);
  /// Appends a list of tokens to each sequence; lists may differ in length.
  void append_sequences(std::span<const tokens> sequences);
  /// Whether every sequence has ended: by an end token, or by `max_length`.
  bool is_done() const;
  /// Appends a token to every sequence that has not ended, and the padding token to the others.
  void generate_next_token();
  /// Why a sequence ended: `open` where it goes on. A stop string of the options is in
  /// its last tokens, and a `token_stream` with the same strings gives the text without it.
  text_end ended_by(std::size_t row) const;
  /// The tokens that the last call appended, one a sequence of the batch; of the only sequence, after it those that
  /// were forced.
  std::span<const token> next_tokens() const;
  /// Sequences that are returned: batch_size * num_return_sequences.
  std::size_t sequence_count() const;
  /// A sequence with its prompt and the end token it has; of beams, the best finished or open ones, without the end
  /// token. Valid until the next step.
  const tokens& sequence(std::size_t k) const;
  /// Tokens of the longest sequence.
  std::size_t token_count() const;
  /// The scores from which the next tokens are chosen, f32[rows, 1, vocabulary]; runs what has not been run.
  argument logits();
  /// Replaces the scores from which the next tokens are chosen, f32[rows, 1, vocabulary].
  void set_logits(const argument& scores);
  /// An output of the model's last run by its name, of a batch of one; `not_found` error.
  argument output(std::string_view name) const;
  /// Keeps the first `length` tokens; of more than one sequence, none (0).
  void rewind_to(std::size_t length);
  /// A rule that bars tokens, before all others; null: none.
  void set_rule(logits_rule rule);
  /// Asked after each chosen token for those that follow without a choice; they are appended at once. Null: none.
  /// Throws `invalid_argument` for more than one sequence.
  void set_forced(forced_rule rule);
  /// Lets all further runs use an adapter of the model, after those that are active: of a parameter that two give, the
  /// later one's value is taken. Tokens that were run keep what the caches hold of them. Errors: `not_found`;
  /// `invalid_argument` for adapters of another model; those of `merged`.
  void set_active_adapter(const adapters& of, std::string_view name);
  /// Values of parameters that come after those of all adapters, in place of those of the call before; none: no own
  /// ones. Errors, which leave what was: those of `adapters::load` and `merged`.
  void set_parameters(const adapter& values);
  /// Back to the model's own values.
  void clear_adapters();
  const search_options& options() const;
  const language_model& model() const;
  /// What speculative decoding did; all 0 without it.
  speculative_stats speculation() const;
  /// Tokens whose keys and values were there already, made by sequences of the model that began alike and had the same
  /// adapters, so that they did not run.
  std::size_t shared_tokens() const;
  /// Bytes of all caches' memory, that of shared blocks included.
  std::size_t cache_bytes() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace kiln::language
