#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kiln/generate/generator.hpp"

namespace kiln::language {

class engine;

/// A sequence for an engine: ONNX Runtime GenAI's `Request`. Its options have one sequence and no beams; `max_length`
/// counts all of its turns.
class request {
 public:
  /// Errors: those of `check`, and `invalid_argument` for a batch or beams.
  request(std::shared_ptr<const language_model> model, search_options search);
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
  /// Whether an end token or `max_length` was reached, or a step failed for this request alone.
  bool is_turn_complete() const;
  /// Why a step failed for this request, else empty.
  const std::string& failure() const;
  /// All tokens, prompts and end tokens included.
  const tokens& sequence() const;
  /// Bars tokens before all other rules; null: none.
  void set_rule(logits_rule rule);
  /// Requests of greater priority run first, and are interrupted last; 0 at first.
  void set_priority(int priority);
  const search_options& options() const;

 private:
  friend class engine;
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// How an engine shares its model.
struct engine_options {
  std::size_t max_requests = 256;          ///< that run at a time
  std::size_t max_scheduled_tokens = 512;  ///< of a step: of prompts what steps leave over, at least one
  /// Bytes of all caches, at least one block; 0: no limit.
  std::size_t cache_bytes = 0;
  bool share_prefixes = true;  ///< keep full blocks, and let sequences that begin alike share them
};

/// What an engine did.
struct engine_statistics {
  std::size_t running = 0, waiting = 0;
  std::size_t blocks = 0, known_blocks = 0;  ///< that sequences or the prefix index have; that the index has
  std::size_t steps = 0, interruptions = 0;
  std::size_t run_tokens = 0, shared_tokens = 0;  ///< run by the model; taken from blocks of others
};

/// Runs any number of requests together, a token of each in every step, beside pieces of new prompts: continuous
/// batching (Yu et al. 2022, "Orca"). Requests come and go between steps. Where blocks run out, the least request is
/// interrupted and computes its tokens again later. One thread at a time; results do not depend on what else runs, but
/// for the rounding of sums.
class engine {
 public:
  /// A model that does not join rows runs one request after the other within a step. A limit of `cache_bytes` for it is
  /// an `unsupported` error.
  engine(std::shared_ptr<const language_model> model, engine_options options = {});
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
