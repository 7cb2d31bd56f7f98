#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/text/token.hpp"

namespace kiln::serve {

/// What a request of `/v1/completions` or `/v1/chat/completions` asks for. Unset numbers are the model's own; without a
/// name of a model it is the only one that is served.
struct completion_request {
  /// A text, or tokens.
  using prompt = std::variant<std::string, language::tokens>;

  std::string model;
  bool is_chat = false;
  std::vector<prompt> prompts{};  ///< of `/v1/completions`
  std::string messages_json{};    ///< of a chat, as the template takes them
  std::string variables_json = "{}";
  std::size_t choices = 1;  ///< of each prompt
  std::size_t best_of = 1;  ///< sequences that are made of each one, of which the likeliest are its choices
  bool stream = false, include_usage = false, echo = false;
  bool adds_special = false;  ///< the special tokens around a text

  static constexpr std::int64_t tokens_of_text = 16;          ///< of a text where nothing is said
  std::optional<std::int64_t> max_tokens{}, seed{}, top_k{};  ///< `max_tokens` 0: the prompt alone, with `echo`
  std::int64_t min_tokens = 0;  ///< before which nothing ends a text by the model's choice
  bool ignores_end = false;     ///< as if that were `max_tokens`
  std::optional<double> temperature{}, top_p{}, min_p{}, repetition_penalty{};
  int priority = 0;  ///< the lower, the sooner it runs
  double presence_penalty = 0, frequency_penalty = 0;
  std::vector<std::pair<language::token, float>> bias{};
  std::vector<std::string> stop{};
  language::tokens end_tokens{};          ///< beside the model's own
  std::optional<std::size_t> logprobs{};  ///< with so many likeliest tokens beside each one
  std::string guidance_kind{};            ///< as `language::guide::of` has it; empty: none
  std::string guidance{};
  std::string guidance_field{};  ///< of the request, which says it

  enum class tool_use { none, automatic, required, named };
  std::string tools_json{};  ///< empty: none
  tool_use tools = tool_use::none;
  std::string tool_name{};  ///< where `named`
  bool parallel_tools = true;
};

/// Whether the answer has log-probabilities of the prompt.
inline bool scores_prompt(const completion_request& r) { return r.echo && r.logprobs; }

/// Reads a request's body. Errors: `api_error` 400 with the field; fields that nobody knows are errors.
completion_request read_text_request(std::string_view body);
completion_request read_chat_request(std::string_view body);
/// Of `/tokenize`: one text (`content` or `prompt`), or the messages of a chat.
completion_request read_token_request(std::string_view body);

/// A JSON schema that the calls of these functions keep to, `{"name": ..., "arguments": {...}}`; with a name, of that
/// one alone.
std::string schema_of_calls(std::string_view tools_json, std::string_view name = {});

}  // namespace kiln::serve
