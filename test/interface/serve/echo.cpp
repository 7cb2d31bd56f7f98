#include "interface/serve/service.hpp"

// The text after a prompt that is shown too, where a text's first space is none of it, as with SentencePiece.
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

TEST_F(serve_service, what_follows_an_echo_keeps_its_space) {
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
  // a word of the prompt is no stop string, and one of the text is
  for (const json& more : {json::object(), json{{"logprobs", 1}}, json{{"stop", json::array({"beginning"})}},
                           json{{"max_tokens", 0}}, json{{"stop", json::array({" the"})}}}) {
    json body = {
        {"model", "scripture"}, {"prompt", "In the beginning"}, {"max_tokens", 6}, {"temperature", 0}, {"echo", true}};
    body.update(more);
    const json wanted = ok("/v1/completions", body)["choices"][0], found = answered(body)["choices"][0];
    EXPECT_EQ(found["text"], wanted["text"]) << more;
    if (more.contains("logprobs")) {
      EXPECT_EQ(found["logprobs"]["text_offset"], wanted["logprobs"]["text_offset"]);
    }
    const std::string text = found["text"];
    EXPECT_EQ(text.substr(0, 16), "In the beginning");
    if (more.empty()) {
      EXPECT_EQ(text[16], ' ');
      json alone = body;
      alone.erase("echo");
      EXPECT_NE(answered(alone)["choices"][0]["text"].get<std::string>()[0], ' ') << "the decoder takes spaces";
    }
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
}

}  // namespace
}  // namespace kiln::serve
