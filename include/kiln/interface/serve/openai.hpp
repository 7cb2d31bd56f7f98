#pragma once
#include <chrono>
#include <memory>
#include <string_view>

#include "kiln/interface/serve/http.hpp"
#include "kiln/interface/serve/models.hpp"
#include "kiln/interface/serve/record.hpp"

namespace kiln::serve {

/// What is told while tokens are made: of a model, that the first token of a sequence came, or a further one, so many
/// seconds after what was before it.
struct token_watch {
  std::function<void(const std::string&model, double seconds)> first{}, next{};
};

/// OpenAI's interface over a set of models. Errors of all of it: `api_error`.
struct openai_call {
  const http_request& request;
  std::shared_ptr<const model_set> models;
  std::shared_ptr<request_record> record;
  std::chrono::milliseconds longest{600'000};  ///< of a request
  token_watch watch{};
};

/// `GET /v1/models` and `GET /v1/models/{name}`.
http_reply list_models(const openai_call& call);
http_reply show_model(const openai_call& call, std::string_view name);
/// `POST /v1/completions` and `POST /v1/chat/completions`. A client that leaves ends its sequences.
http_reply complete(const openai_call& call, bool is_chat);
/// `POST /tokenize` and `POST /detokenize`: `{"tokens": [...]}` of a text or a chat, and the text of tokens.
http_reply show_tokens(const openai_call& call);
http_reply show_text(const openai_call& call);
/// `POST /v1/embeddings`, of models whose folder says how they embed.
http_reply embed(const openai_call& call);

}  // namespace kiln::serve
