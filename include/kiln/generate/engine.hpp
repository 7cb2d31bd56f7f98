#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kiln/generate/engine_options.hpp"
#include "kiln/generate/generator.hpp"

namespace kiln::language {

class engine;

/// Told of each token of a prompt but the first, `sequence[at]`: the model's scores for its place, before any rule.
using prompt_watch =
    std::function<void(std::span<const token> sequence, std::size_t at, std::span<const float> logits)>;

/// A sequence for an engine: ONNX Runtime GenAI's `Request`. Its options have one sequence and no beams; `max_length`
/// counts all of its turns.
class request {
 public:
  /// Errors: those of `check`, and `invalid_argument` for a batch or beams; with speculative decoding those of a
  /// generator. The model's configuration says how tokens are guessed where nothing else is given.
  request(std::shared_ptr<const language_model> model, search_options search);
  request(std::shared_ptr<const language_model> model, search_options search, const speculative_options& ahead);
  ~request();
  request(const request&) = delete;
  request& operator=(const request&) = delete;

  /// Appends tokens of the prompt, or of the next turn once a turn is complete: the request then runs again. Errors,
  /// which leave it as it was: tokens that are none, or more than `max_length` of them in all.
  void add_tokens(std::span<const token> more);
  /// Whether tokens were made that `take_unseen` has not given.
  bool has_unseen() const;
  /// The next of them; `invalid_argument` where there is none.
  token take_unseen();
  /// Whether an end token, a stop string or `max_length` was reached, or a step failed for this request alone.
  bool is_turn_complete() const;
  /// Why; `open` before. A stop string is in the last tokens, and a `token_stream` with `options().stop_strings` gives
  /// the text without it.
  text_end ended_by() const;
  /// Why a step failed for this request, else empty.
  const std::string& failure() const;
  /// All tokens, prompts and end tokens included.
  const tokens& sequence() const;
  /// Bars tokens before all other rules; null: none.
  void set_rule(logits_rule rule);
  /// Asked after each chosen token for those that follow without a choice; null: none.
  void set_forced(forced_rule rule);
  /// Told of the tokens that were added so far, in order, each once; such a prompt runs whole, whatever others began
  /// alike and whatever of it an earlier turn ran. Null: none. Errors: `unsupported`, here and for tokens that are
  /// added before all were told, where a model runs the prompt in one piece since its angles change with the length.
  void set_prompt_watch(prompt_watch watch);
  /// Whether a turn is complete, by `max_length`, once its prompt has run: no token is made, and a prompt may have
  /// `max_length` tokens. Before any token is added.
  void set_makes_none(bool none);
  /// Tokens that end a turn beside the model's own. Errors: those that are none of the model's.
  void set_end_tokens(std::span<const token> more);
  /// Lets an adapter of the model change its values, after those that are active. What ran before runs again. Errors:
  /// those of a generator.
  void set_active_adapter(const adapters& of, std::string_view name);
  void clear_adapters();
  /// What speculative decoding did; all 0 without it.
  speculative_stats speculation() const;
  /// Requests of greater priority run first, and are interrupted last; 0 at first.
  void set_priority(int priority);
  const search_options& options() const;

 private:
  friend class engine;
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// What an engine did.
struct engine_statistics {
  std::size_t running = 0, waiting = 0;
  /// That sequences or the prefix index have, and that the index has; without a limit of caches, those of all of the
  /// model's generators and engines.
  std::size_t blocks = 0, known_blocks = 0;
  std::size_t steps = 0, interruptions = 0;
  std::size_t run_tokens = 0, shared_tokens = 0;  ///< run by the model; taken from blocks of others
};

/// Runs any number of requests together, a token of each in every step (with guesses, which budget and blocks that are
/// left serve, several), beside pieces of new prompts: continuous batching (Yu et al. 2022, "Orca"). Those of the same
/// adapters share a run, and begin alike with the same blocks; without a limit of caches, with those of generators too.
/// Requests come and go between steps. Where blocks run out, the least request is interrupted and computes its tokens
/// again later. One thread at a time; results do not depend on what else runs, but for the rounding of sums.
class engine {
 public:
  /// A model that does not join rows runs one request after the other within a step. A limit of caches for it is an
  /// `unsupported` error. Without options, those of the model's configuration.
  explicit engine(std::shared_ptr<const language_model> model);
  engine(std::shared_ptr<const language_model> model, engine_options options);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  /// Takes a request of the same model; one that is there already, and one that can't have as many blocks as its tokens
  /// need, are `invalid_argument` errors.
  void add(std::shared_ptr<request> r);
  /// Ends a request at once; without effect where it is not there.
  void remove(const request& r);
  /// Whether a request has a turn that is not complete.
  bool has_pending() const;
  /// One run of the model; the requests that got a token. Where it throws, all is as before the step; a request whose
  /// own rule throws fails alone.
  std::vector<std::shared_ptr<request>> step();
  engine_statistics statistics() const;
  const language_model& model() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace kiln::language
