// sample_guides CASES.json TOKENIZER_FOLDER: draws texts that guides allow, for Python to judge. Each case is
// {"regex": text}, {"schema": value} or {"lark": text}, with "count" texts; the list printed holds a list of texts for
// each, or
// {"error": ...}. Odd texts are of the tokenizer's tokens, even ones of a vocabulary of every byte.
#include <fstream>
#include <iostream>
#include <kiln/core/error.hpp>
#include <kiln/text/tokenizer.hpp>
#include <nlohmann/json.hpp>

#include "text/guidance/vocabularies.hpp"

namespace {

using namespace kiln::language;
using json = nlohmann::ordered_json;

// Null where the text is not whole after many tokens.
json draw(guide g, const std::vector<std::string>& texts, token end, std::mt19937& random) {
  g.reset();
  std::string text;
  for (int step = 0; step < 600; ++step) {
    const auto bits = mask_of(g, texts.size());
    std::vector<token> choices;
    for (token id = 0; id < static_cast<token>(texts.size()); ++id)
      if (allows(bits, id)) choices.push_back(id);
    if (choices.empty()) throw std::runtime_error("no token may follow " + text);
    std::vector<token> closing;  // without a leaning to these, JSON seldom ends
    for (const token id : choices)
      if (const auto& t = texts[static_cast<std::size_t>(id)];
          id == end || t == "\"" || t == "]" || t == "}" || t == ")" || t == "=" || t == "\n")
        closing.push_back(id);
    const auto& from = !closing.empty() && random() % 4 == 0 ? closing : choices;
    const token next = from[random() % from.size()];
    g.advance(next);
    if (next == end) return text;
    text += texts[static_cast<std::size_t>(next)];
  }
  return nullptr;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::vector<std::string> bytes = byte_complete_texts(1000);
  const auto tokenizer = kiln::language::tokenizer::load(std::filesystem::path(words[2]));
  std::vector<std::string> texts;
  for (std::size_t id = 0; id < tokenizer.vocabulary_size(); ++id)
    texts.emplace_back(tokenizer.token_bytes(static_cast<token>(id)));
  const token end = tokenizer.special().eos.empty() ? 0 : tokenizer.special().eos[0];
  const guide_vocabulary of_bytes(bytes, {0}), of_tokens = guide_vocabulary::of(tokenizer, {end});
  std::mt19937 random(11);
  json results = json::array();
  std::ifstream in(words[1]);
  for (const auto& c : json::parse(in)) {
    try {
      const auto made = [&](const guide_vocabulary& v) {
        return c.contains("schema") ? guide::json_schema(v, c["schema"].dump())
               : c.contains("lark") ? guide::lark(v, c["lark"].get<std::string>())
                                    : guide::regex(v, c["regex"].get<std::string>());
      };
      const guide a = made(of_bytes), b = made(of_tokens);
      json drawn = json::array();
      for (int k = 0; k < c["count"].get<int>(); ++k)
        drawn.push_back(k % 2 == 0 ? draw(a, bytes, 0, random) : draw(b, texts, end, random));
      results.push_back(drawn);
    } catch (const std::exception& e) {
      results.push_back({{"error", e.what()}});
    }
  }
  std::cout << results.dump(-1, ' ', true, json::error_handler_t::strict) << "\n";
}
