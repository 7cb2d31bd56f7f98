// A language model from a folder with genai_config.json continues prompts, and is checked against the continuations
// that PyTorch found.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/generate/generator.hpp"
#include "kiln/text/tokenizer.hpp"

int main() try {
  namespace language = kiln::language;
  const std::string folder = "examples/models/scripture/";
  // [load]
  const auto model = language::language_model::load(language::read_config(folder), kiln::eigen_target());
  const auto tokenizer = language::tokenizer::load(folder);
  // [/load]
  int wrong = 0;
  for (const nlohmann::json& golden : nlohmann::json::parse(std::ifstream(folder + "golden.json"))) {
    const language::tokens expected = golden["greedy_ids"];
    language::search_options search = model->settings().search;
    search.max_length = static_cast<std::int64_t>(expected.size());
    const std::string prompt = golden["prompt"];
    // [generate]
    language::generator next(model, search);
    next.append_tokens(tokenizer.encode(prompt));
    while (!next.is_done()) next.generate_next_token();
    fmt::print("{}\n", tokenizer.decode(next.sequence(0)));
    // [/generate]
    const bool same = next.sequence(0) == expected;
    fmt::print("[{} tokens, {}]\n", next.token_count(), same ? "as expected" : "NOT as expected");
    wrong += !same;
  }
  return wrong ? 1 : 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "scripture: {}\n", e.what());
  return 2;
}
