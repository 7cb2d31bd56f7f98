#pragma once
#include "kiln/generate/engine.hpp"
#include "kiln/generate/impl/sequence_memory.hpp"
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
  std::string failure;
  int priority = 0;
  bool is_complete = true;  // nothing to run
  // the engine's
  sequence_state state;
  const engine* owner = nullptr;
  std::uint64_t arrival = 0;
  bool is_running = false;

  parts(std::shared_ptr<const language_model> m, search_options o);
  bool is_end(token t) const;
  /// Chooses and appends a token after these scores; an exception of the rule is this request's failure.
  void advance(std::span<float> scores);
};

}  // namespace kiln::language
