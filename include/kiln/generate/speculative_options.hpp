#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "kiln/generate/option_info.hpp"

namespace kiln::language {

/// How tokens are guessed ahead, to be checked in one run of the model: the options of ONNX Runtime GenAI's
/// `set_speculative_options` and of the object `speculative` in genai_config.json, with its defaults. Guesses come from
/// a draft model where the configuration has one, or from what followed the same tokens earlier in the sequence.
struct speculative_options {
  bool ngram_chained_lookup = false;  ///< look on after what was found, until the guess is long enough
  bool cooldown = false;              ///< after three wrong guesses of the least width, one step without
  std::int64_t max_draft_tokens = 4;  ///< tokens guessed in a round, 1 to 16
  std::int64_t ngram_size = 0;        ///< guess what followed the last ngram_size - 1 tokens; 0: no lookup; 2 to 16
  std::int64_t min_adaptive_k = 0;    ///< the least and first width, which then follows the measured rate; 0: fixed
};

/// All options, in the order of the struct.
std::span<const option_name> speculative_option_table();

/// Set and get an option by name, with the errors of search options.
void set_number(speculative_options& to, std::string_view name, double value);
void set_flag(speculative_options& to, std::string_view name, bool value);
double get_number(const speculative_options& from, std::string_view name);
bool get_flag(const speculative_options& from, std::string_view name);

/// Checks bounds and the options with each other: no chained lookup without lookup.
void check(const speculative_options& options);

}  // namespace kiln::language
