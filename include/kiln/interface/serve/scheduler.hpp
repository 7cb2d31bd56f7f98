#pragma once
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kiln/generate/engine.hpp"
#include "kiln/generate/logit_rules.hpp"
#include "kiln/text/guidance/guide.hpp"

namespace kiln::serve {

/// A sequence to be made.
struct generation {
  language::tokens prompt{};
  language::search_options search{};
  language::logit_changes changes{};
  std::optional<language::guide> guide{};
  std::optional<std::size_t> scores{};  ///< log-probabilities, with so many of the likeliest tokens
  bool scores_prompt = false;           ///< of the prompt's tokens, too
  bool makes_none = false;              ///< the prompt runs, and ends by `max_length`
  language::tokens end_tokens{};        ///< beside the model's own
  int priority = 0;                     ///< those of greater ones run first
};

/// What a step made of a sequence.
struct progress {
  std::size_t index = 0;  ///< of the sequence in its order
  language::tokens made{};
  std::vector<language::scored_token> scores{};  ///< of each one, where they were asked for
  std::vector<language::scored_token> prompt{};  ///< all but its first one, once, where they were asked for
  language::text_end end = language::text_end::open;
  std::string failure{};    ///< where it ended by `failure`
  bool is_refused = false;  ///< by the engine, before it began
  bool is_cut = false;      ///< since the server ends
};

/// The sequences of one request while they are made. Giving up the last owner, or `cancel`, ends them.
class order {
 public:
  struct shared;
  explicit order(std::shared_ptr<shared> own);
  ~order();
  order(const order&) = delete;
  order& operator=(const order&) = delete;
  /// What was made since the last call; empty after `longest` without any. The last progress of each sequence has an
  /// end.
  std::vector<progress> wait(std::chrono::milliseconds longest);
  void cancel();

 private:
  std::shared_ptr<shared> own_;
};

/// Counts of a scheduler, since it began but for the first three.
struct scheduler_statistics {
  std::size_t running = 0, waiting = 0, blocks = 0;
  std::size_t steps = 0, prompt_tokens = 0, made_tokens = 0, shared_tokens = 0, interruptions = 0, canceled = 0;
};

/// Runs an engine in a thread of its own; requests come and go from any thread.
class scheduler {
 public:
  /// At most `most_waiting` sequences wait for the engine or are in it.
  scheduler(std::shared_ptr<const language::language_model> model, language::engine_options options,
            std::size_t most_waiting);
  ~scheduler();
  /// Errors, which are the caller's to show: those of `request` and `engine::add`, and `limit` where too many wait;
  /// `api_error` 503 once it is stopped.
  std::unique_ptr<order> submit(std::vector<generation> all);
  /// Ends what is not complete as failed, and all that comes later.
  void stop();
  scheduler_statistics statistics() const;
  const language::language_model& model() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace kiln::serve
