#pragma once
#include <memory>
#include <mutex>
#include <optional>

#include "kiln/generate/engine.hpp"
#include "kiln/text/guidance/guide.hpp"

namespace kiln::language {

/// What GenAI's interfaces call GeneratorParams, but for the model.
struct generator_options {
  search_options search;
  speculative_options ahead;
  std::optional<language::guide> guide{};
  bool forced_tokens = false;  ///< of the guide
};
/// A generator as the options say.
generator generator_of(const std::shared_ptr<const language_model>& model, const generator_options& o);

/// What GenAI's interfaces call Request: its turns, and the tokens that were not asked for. An engine and its callers
/// own it together, and it may outlive the engine. It may be used while another thread steps the engine.
class served_request {
 public:
  /// Errors: those of `request`.
  served_request(std::shared_ptr<const language_model> model, const generator_options& o);
  served_request(const served_request&) = delete;
  served_request& operator=(const served_request&) = delete;

  /// Tokens of the prompt, before the first step, and of a further turn, after one that is complete. Errors: those of
  /// `request::add_tokens`, and `invalid_argument` at another time.
  void add_prompt(std::span<const token> more);
  void continue_with(std::span<const token> more);
  bool has_unseen() const;
  token take_unseen();
  /// Whether it had a prompt, and its turn is complete.
  bool is_done() const;
  text_end ended_by() const;
  void set_active_adapter(const adapters& of, std::string_view name);

 private:
  friend class served_engine;
  struct shared;  // an engine's
  template <class F> auto with(F&& f) const;

  const std::shared_ptr<const language_model> model_;
  const std::shared_ptr<request> own_;
  mutable std::mutex mutex_;  // of what follows, and of the request while no engine has it
  std::weak_ptr<shared> engine_;
  bool is_begun_ = false;  // has run
};

/// What GenAI's interfaces call Engine: hands out one request with a new token after the other. Requests may be added,
/// removed and asked in other threads than the one that steps.
class served_engine {
 public:
  /// With the options of the model's configuration.
  explicit served_engine(std::shared_ptr<const language_model> model);
  served_engine(const served_engine&) = delete;
  served_engine& operator=(const served_engine&) = delete;
  ~served_engine();

  /// Errors: those of `engine::add`; `invalid_argument` for a request that an engine has, or of another model.
  void add(std::shared_ptr<served_request> r);
  /// Error: `invalid_argument` for a request that this engine does not have.
  void remove(served_request& r);
  bool has_pending() const;
  /// A request with a new token; null when all turns are complete. When all were handed out, every open request takes
  /// a step first; the failure of one of them is thrown (`invalid_argument`) when all have.
  std::shared_ptr<served_request> step();

 private:
  const std::shared_ptr<served_request::shared> own_;
};

}  // namespace kiln::language
