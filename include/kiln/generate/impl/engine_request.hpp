#pragma once
#include <algorithm>
#include <optional>

#include "kiln/generate/adapters.hpp"
#include "kiln/generate/engine.hpp"
#include "kiln/generate/impl/sequence_memory.hpp"
#include "kiln/generate/impl/speculation.hpp"
#include "kiln/generate/impl/stop_row.hpp"
#include "kiln/generate/sampler.hpp"

namespace kiln::language {

struct request::parts {
  std::shared_ptr<const language_model> model;
  search_options options;
  tokens ends, all;
  tokens unseen;          // tokens that were made
  std::size_t taken = 0;  // of them, that the caller knows
  sampler draw;
  logits_rule rule;
  forced_rule forced;
  prompt_watch watch;
  std::size_t told = 1, prompt = 0;  // the next token that the watch is told of, and their end
  std::optional<detail::speculation> ahead;
  std::optional<detail::stop_row> stop;
  std::vector<std::shared_ptr<const adapters::values>> active;
  adapters::values parameters;  // of the active adapters
  std::string failure;
  int priority = 0;
  bool makes_none = false;
  bool is_complete = true;  // nothing to run
  text_end why = text_end::open;
  // the engine's
  sequence_state state;
  const engine* owner = nullptr;
  std::uint64_t arrival = 0;
  bool is_running = false;

  parts(std::shared_ptr<const language_model> m, search_options o, const speculative_options& guess);
  bool is_end(token t) const;
  /// Chooses and appends a token after these scores, and those that are forced; then goes on as far as tokens were
  /// guessed. An exception of the rule is this request's failure.
  void advance(std::span<float> scores);
  /// Whether the watch has yet to be told of tokens.
  bool tells() const { return watch && told < prompt; }
  /// Tokens that are to run after the first `run`; a prompt of which nothing is made runs without its last token, of
  /// whose scores there is no use, but for one token that is alone.
  std::size_t left_after(std::size_t run) const {
    return makes_none ? std::max<std::size_t>(run + 2, all.size()) - 1 - run : all.size() - run;
  }
  /// Refuses a watch of a prompt of so many tokens that the model runs in one piece.
  void check_watch(std::size_t tokens) const;
  /// Tells the watch of the token at a place, if it has not been. An exception is this request's failure.
  void tell(std::size_t at, std::span<const float> scores);
  void use_values(std::vector<std::shared_ptr<const adapters::values>> all);
  void end(text_end how) { is_complete = true, why = how; }

 private:
  void fail();  // by the exception that is handled
  bool choose_next(std::span<float> scores);
  bool append(token t, std::span<float> scores);
};

}  // namespace kiln::language
