#pragma once
#include <memory>
#include <string>
#include <vector>

#include "kiln/interface/serve/completion_request.hpp"
#include "kiln/interface/serve/impl/json.hpp"
#include "kiln/interface/serve/models.hpp"
#include "kiln/text/token_stream.hpp"

namespace kiln::serve {

/// The answer to a completion request while it is made, whole or as the chunks of a stream.
class answer {
 public:
  /// One prompt's tokens for each of its prompts; choices of a prompt follow one another.
  answer(completion_request asked, std::shared_ptr<const language_entry> entry, std::vector<language::tokens> prompts,
         std::string id, std::int64_t created);

  /// What a stream begins with.
  std::vector<json> begin();
  /// Takes a progress; the chunks that it makes. Errors: `api_error` 500 for a sequence that failed.
  std::vector<json> take(const progress& p);
  bool is_complete() const { return open_ == 0; }
  /// The whole answer, once it is complete.
  json whole() const;
  /// The last chunk of a stream, where usage was asked for.
  json usage_chunk() const;
  std::size_t prompt_tokens() const;
  std::size_t made_tokens() const { return made_; }

 private:
  struct choice {
    language::token_stream stream;
    std::optional<tool_reader> reader{};
    std::string text{}, finish{};
    std::vector<tool_call> calls{};
    json scores = json::array();
    std::optional<language::token_stream> shown{};  // of `offset`: as `stream`, but nothing waits for stop strings
    std::size_t offset = 0;                         // characters
    double logprob = 0;                             // of the made tokens, in all
    std::size_t made = 0;
    bool is_begun = false;  // the prompt was shown with its scores
  };
  json head(bool is_chunk) const;
  json usage() const;
  json chunk(std::size_t index, json delta, json scores, const std::string& finish) const;
  json scores_of(choice& c, const progress& p) const;
  json lists_of(const std::vector<language::scored_token>& all, language::token_stream& shown,
                std::size_t& offset) const;
  json scores_of_prompt(choice& c, const progress& p) const;
  std::vector<const choice*> chosen() const;
  json calls_of(const choice& c, bool has_index) const;
  std::string spelling(language::token t) const;

  const completion_request asked_;
  const std::shared_ptr<const language_entry> entry_;
  const std::vector<language::tokens> prompts_;
  const std::string id_;
  const std::int64_t created_;
  std::vector<choice> choices_;
  std::size_t open_, made_ = 0;
};

}  // namespace kiln::serve
