#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generate/option_info.hpp"

namespace kiln::language {

/// How the next tokens are chosen: the options of ONNX Runtime GenAI's `set_search_options` and of the object `search`
/// in genai_config.json, with its defaults.
struct search_options {
  bool do_sample =
      false;  ///< draw from the distribution; else take the likeliest token, as with top_k 1 or temperature 0
  bool early_stopping = true;                ///< beams: end with num_beams finished ones, however likely the others are
  bool past_present_share_buffer = false;    ///< accepted; caches always grow in place
  std::int64_t min_length = 0;               ///< tokens of the whole sequence before which none may end it
  std::int64_t max_length = 0;               ///< tokens of the whole sequence, prompt included; 0: the context length
  std::int64_t batch_size = 1;               ///< sequences side by side, 1 to 32
  std::int64_t num_beams = 1;                ///< 1 to 32
  std::int64_t num_return_sequences = 1;     ///< of each batch entry, at most num_beams
  std::int64_t top_k = 50;                   ///< draw among so many of the likeliest tokens; 0: all
  std::int64_t no_repeat_ngram_size = 0;     ///< no n-gram of this length appears twice; 0: any may
  std::int64_t random_seed = -1;             ///< -1: another one in each generator
  std::optional<std::int64_t> chunk_size{};  ///< prompts are run in pieces of so many tokens; unset: whole
  double top_p = 0;                          ///< draw among the likeliest tokens of this total probability; 0: all
  double temperature = 1;                    ///< divides the scores before they are drawn from
  double repetition_penalty =
      1;  ///< once for each token of the sequence: a score s > 0 is divided by it, others multiplied
  double length_penalty = 1;     ///< beams: the sum of log-probabilities is divided by length to this power
  double diversity_penalty = 0;  ///< accepted, without effect, as in GenAI
  double blank_penalty = 0;      ///< accepted, without effect: transducers alone have it
  /// The text that is made ends with one of these, wherever tokens begin and end; kiln's own, `stop_strings` in
  /// genai_config.json. Not with beams.
  std::vector<std::string> stop_strings{};
};

/// All options that are flags and numbers, in the order of the struct.
std::span<const option_name> search_option_table();

/// Sets an option by name. Errors: `not_found` lists the names; a number for a flag or the reverse, one that is not
/// whole where whole ones are counted, and one beyond its bounds are `invalid_argument`.
void set_number(search_options& to, std::string_view name, double value);
void set_flag(search_options& to, std::string_view name, bool value);
/// An option's value; `not_found` as above. An unset chunk_size is 0.
double get_number(const search_options& from, std::string_view name);
bool get_flag(const search_options& from, std::string_view name);

/// Checks the options with each other and with a model: `max_length` at most the context length and at least
/// `min_length`, `top_k` at most the vocabulary, no sampling and no
/// stop strings with beams. Sets `max_length` where it is 0.
void check(search_options& options, std::int64_t context_length, std::int64_t vocabulary_size);

}  // namespace kiln::language
