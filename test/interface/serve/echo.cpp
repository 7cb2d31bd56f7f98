#include "interface/serve/service.hpp"

#include "kiln/generate/logit_rules.hpp"
#include "kiln/runtime/executable.hpp"

// Prompts that the answer shows, their log-probabilities, and the text after a prompt.
namespace kiln::serve {
namespace {

// The model of the examples with a decoder that takes the first space away, as Llama's does.
json spaced_tokenizer() {
  std::ifstream file(scripture / "tokenizer.json");
  json t = json::parse(file);
  json take_space = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  t["decoder"] = {{"type", "Sequence"},
                  {"decoders", json::array({t["decoder"], {{"type", "Fuse"}}, std::move(take_space)})}};
  return t;
}

// A text's first space is none of it, as with SentencePiece; one of what follows a prompt is.
TEST_F(serve_service, what_follows_a_prompt_keeps_its_space) {
  test::temporary_folder folder;
  folder.write("spaced/tokenizer.json", spaced_tokenizer().dump());
  for (const char* name : {"genai_config.json", "model.onnx"})
    fs::copy_file(scripture / name, folder / "spaced" / name);
  service_options o;
  o.models.models = {(folder / "spaced").string()};
  o.models.compile.threads = 2;
  o.log = [](std::string_view) {};
  service spaced(o);
  const auto answered = [&](json body) {
    body.erase("model");
    const http_reply r = spaced.answer({"POST", "/v1/completions", {}, body.dump(), "test", {}});
    EXPECT_EQ(r.status, 200) << r.body;
    return json::parse(r.body);
  };
  const auto words = language::tokenizer::load(folder / "spaced");
  EXPECT_EQ(words.decode(words.encode(" the")), "the") << "the decoder takes spaces";
  // a word of the prompt is no stop string, and one of the text is
  for (const json& more : {json::object(), json{{"logprobs", 1}}, json{{"stop", json::array({"beginning"})}},
                           json{{"max_tokens", 0}, {"echo", true}}, json{{"stop", json::array({" the"})}}})
    for (const bool echo : {true, false}) {
      json body = {{"model", "scripture"},
                   {"prompt", "In the beginning"},
                   {"max_tokens", 6},
                   {"temperature", 0},
                   {"echo", echo}};
      body.update(more);
      const json wanted = ok("/v1/completions", body)["choices"][0], found = answered(body)["choices"][0];
      EXPECT_EQ(found["text"], wanted["text"]) << more;
      if (more.contains("logprobs")) {
        EXPECT_EQ(found["logprobs"]["text_offset"], wanted["logprobs"]["text_offset"]);
      }
      const std::string text = found["text"];
      EXPECT_EQ(text.starts_with("In the beginning"), body["echo"]);
      if (more.empty()) {
        EXPECT_EQ(text[echo ? 16 : 0], ' ');
      }
      EXPECT_EQ(found["finish_reason"], wanted["finish_reason"]) << more;
      body["stream"] = true;
      body.erase("model");
      const http_reply r = spaced.answer({"POST", "/v1/completions", {}, body.dump(), "test", {}});
      std::string all, streamed;
      r.stream([&](std::string_view piece) {
        all += piece;
        return true;
      });
      const std::regex form("data: (\\{.*)\n\n");
      for (std::sregex_iterator k(all.begin(), all.end(), form), end; k != end; ++k) {
        const json chunk = json::parse((*k)[1].str());
        for (const json& choice : chunk["choices"]) streamed += choice["text"].get<std::string>();
      }
      EXPECT_EQ(streamed, text) << more;
    }
  // after a prompt that ends within a character, of which the text shows nothing, the space is the first of a text
  for (const bool is_cut : {false, true}) {
    language::tokens prompt = words.encode("In the beginning");
    if (is_cut) prompt.push_back(words.encode("\xC3\xA9").front());  // the first of two bytes
    const json body = {
        {"prompt", prompt}, {"max_tokens", 6}, {"temperature", 0}, {"guided_choice", json::array({" the"})}};
    EXPECT_EQ(answered(body)["choices"][0]["text"], is_cut ? "the" : " the");
  }
}

// By a run of the model alone.
TEST_F(serve_service, an_echo_has_log_probabilities_of_the_prompt) {
  const json g = golden()[0];
  const language::tokens prompt = g["prompt_ids"];
  const auto c = language::read_config(scripture);
  const auto model = language::load_model(c, language::session_of(c));
  auto state = model->new_state();
  workspace memory;
  const auto vocabulary = static_cast<std::size_t>(model->vocabulary_size());
  std::vector<float> logits(prompt.size() * vocabulary);
  model->run(state, memory, prompt, prompt.size(), logits);
  const json body = {{"model", "scripture"}, {"prompt", g["prompt"]}, {"max_tokens", 2},
                     {"temperature", 0},     {"echo", true},          {"logprobs", 1}};
  const auto check = [&](const json& scores, std::size_t made) {
    ASSERT_EQ(scores["tokens"].size(), prompt.size() + made);
    ASSERT_EQ(scores["top_logprobs"].size(), prompt.size() + made);
    EXPECT_EQ(scores["token_logprobs"][0], nullptr);
    EXPECT_EQ(scores["top_logprobs"][0], nullptr);
    std::string text;
    for (std::size_t k = 0; k < prompt.size(); ++k) {
      EXPECT_EQ(scores["text_offset"][k], text.size());
      text += scores["tokens"][k].get<std::string>();
      if (k == 0) continue;
      const auto row = std::span<const float>(logits).subspan((k - 1) * vocabulary, vocabulary);
      const language::scored_token wanted = language::score_of(prompt[k], row, 1);
      EXPECT_NEAR(scores["token_logprobs"][k].get<float>(), wanted.logprob, 1e-4f) << k;
      EXPECT_NEAR(scores["top_logprobs"][k].begin().value().get<float>(), wanted.top[0].second, 1e-4f) << k;
    }
    EXPECT_EQ(text, g["prompt"]);
    if (made > 0) {
      EXPECT_EQ(scores["text_offset"][prompt.size()], text.size());
    }
  };
  const json whole = ok("/v1/completions", body), o = whole["choices"][0];
  check(o["logprobs"], 2);
  EXPECT_EQ(o["text"], g["prompt"].get<std::string>() + alone(g["prompt"], 2));
  EXPECT_EQ(ok("/v1/completions", body)["choices"][0], o) << "whatever is known of its beginning";
  std::string text;
  json scores = json::array();
  for (const json& chunk : stream("/v1/completions", body))
    for (const json& one : chunk["choices"]) {
      text += one["text"];
      if (!one["logprobs"].is_null())
        for (const json& t : one["logprobs"]["token_logprobs"]) scores.push_back(t);
    }
  EXPECT_EQ(text, o["text"]);
  EXPECT_EQ(scores, o["logprobs"]["token_logprobs"]);
  json prompt_alone = body;
  prompt_alone["max_tokens"] = 0;
  const json p = ok("/v1/completions", prompt_alone);
  check(p["choices"][0]["logprobs"], 0);
  EXPECT_EQ(p["choices"][0]["text"], g["prompt"]);
  EXPECT_EQ(p["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(p["usage"]["completion_tokens"], 0);
}

// A special token is none of the text.
TEST_F(serve_service, offsets_are_places_in_the_text) {
  language::tokens prompt = golden()[0]["prompt_ids"];
  prompt.insert(prompt.begin(), 0);
  prompt.insert(prompt.begin() + 2, 0);
  const json o = ok("/v1/completions", {{"model", "scripture"},
                                        {"prompt", prompt},
                                        {"max_tokens", 3},
                                        {"temperature", 0},
                                        {"echo", true},
                                        {"logprobs", 0}})["choices"][0];
  const std::string text = o["text"];
  EXPECT_TRUE(text.starts_with(golden()[0]["prompt"].get<std::string>())) << text;
  std::size_t end = 0;
  ASSERT_EQ(o["logprobs"]["tokens"].size(), prompt.size() + 3);
  for (std::size_t k = 0; k < prompt.size() + 3; ++k) {
    EXPECT_EQ(o["logprobs"]["text_offset"][k], end) << k;
    if (k == 0 || k == 2) {
      EXPECT_EQ(o["logprobs"]["tokens"][k], "<|endoftext|>");
      continue;
    }
    const std::string token = o["logprobs"]["tokens"][k];
    EXPECT_EQ(text.substr(end, token.size()), token) << k;
    end += token.size();
  }
  EXPECT_EQ(end, text.size());
}

TEST_F(serve_service, a_prompt_may_be_as_long_as_the_context) {
  language::tokens prompt;
  while (prompt.size() < 256) prompt.push_back(static_cast<language::token>(100 + prompt.size()));
  json body = {{"model", "scripture"}, {"prompt", prompt}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 0}};
  json o = ok("/v1/completions", body);
  EXPECT_EQ(o["choices"][0]["logprobs"]["token_logprobs"].size(), 256u);
  EXPECT_EQ(o["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(o["usage"]["completion_tokens"], 0);
  body.erase("logprobs");
  EXPECT_EQ(ok("/v1/completions", body)["choices"][0]["text"], o["choices"][0]["text"]);
  body["max_tokens"] = 1;
  expect_error(ask("/v1/completions", body), 400, "256 tokens: found 256 of the prompt", "prompt");
  prompt.push_back(100);
  body["max_tokens"] = 0, body["prompt"] = prompt;
  expect_error(ask("/v1/completions", body), 400, "found 257 of the prompt", "prompt");
  // one token has nothing before it
  body["prompt"] = {100}, body["logprobs"] = 1;
  o = ok("/v1/completions", body)["choices"][0];
  EXPECT_EQ(o["logprobs"]["token_logprobs"], json::array({nullptr}));
  EXPECT_EQ(o["finish_reason"], "length");
}

}  // namespace
}  // namespace kiln::serve
