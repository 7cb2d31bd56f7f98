#include "interface/serve/service.hpp"

#include "kiln/version.hpp"

// Completions of texts and chats.
namespace kiln::serve {
namespace {

TEST_F(serve_service, a_completion_is_what_pytorch_made_whatever_else_runs) {
  std::vector<std::thread> others;
  std::atomic<bool> ending = false;
  for (int k = 0; k < 3; ++k)
    others.emplace_back([&, k] {
      while (!ending)
        ok("/v1/completions", {{"model", "scripture"},
                               {"prompt", "And the king"},
                               {"max_tokens", 30 + k},
                               {"n", 3},
                               {"temperature", 1},
                               {"seed", k}});
    });
  for (const json& g : golden()) {
    const std::string prompt = g["prompt"], text = g["text"];
    const int most = static_cast<int>(g["greedy_ids"].size() - g["prompt_ids"].size());
    const json o =
        ok("/v1/completions", {{"model", "scripture"}, {"prompt", prompt}, {"max_tokens", most}, {"temperature", 0}});
    EXPECT_EQ(prompt + o["choices"][0]["text"].get<std::string>(), text);
    EXPECT_EQ(o["usage"]["prompt_tokens"], g["prompt_ids"].size());
    EXPECT_EQ(o["usage"]["completion_tokens"], most);
    const bool is_ended = g["greedy_ids"].back() == 0;  // by the end token
    EXPECT_EQ(o["choices"][0]["finish_reason"], is_ended ? "stop" : "length");
    const json by_ids = ok("/v1/completions", {{"model", "scripture"},
                                               {"prompt", g["prompt_ids"]},
                                               {"max_tokens", most},
                                               {"temperature", 0},
                                               {"echo", true}});
    EXPECT_EQ(by_ids["choices"][0]["text"], text);
  }
  ending = true;
  for (std::thread& t : others) t.join();
}

TEST_F(serve_service, a_stream_has_the_same_text_piece_by_piece) {
  const json body = {{"model", "scripture"},
                     {"prompt", {"In the", "And he"}},
                     {"max_tokens", 20},
                     {"temperature", 0},
                     {"n", 2},
                     {"stream_options", {{"include_usage", true}}}};
  const auto chunks = stream("/v1/completions", body);
  std::vector<std::string> text(4), finish(4);
  for (const json& c : chunks)
    for (const json& one : c["choices"]) {
      text[one["index"].get<std::size_t>()] += one["text"];
      if (!one["finish_reason"].is_null()) finish[one["index"].get<std::size_t>()] = one["finish_reason"];
    }
  EXPECT_EQ(text[0], alone("In the", 20));
  EXPECT_EQ(text[1], text[0]);
  EXPECT_EQ(text[2], alone("And he", 20));
  EXPECT_EQ(finish, std::vector<std::string>(4, "length"));
  EXPECT_EQ(chunks.back()["usage"]["completion_tokens"], 80);
  EXPECT_TRUE(chunks.back()["choices"].empty());
  EXPECT_TRUE(chunks.front()["usage"].is_null());
  EXPECT_GT(chunks.size(), 20u);
}

TEST_F(serve_service, a_chat_goes_by_the_template) {
  const json body = {{"model", "chatty"},
                     {"messages", {{{"role", "user"}, {"content", "In the"}}}},
                     {"max_tokens", 12},
                     {"temperature", 0}};
  const json o = ok("/v1/chat/completions", body);
  EXPECT_EQ(o["object"], "chat.completion");
  EXPECT_EQ(o["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(o["choices"][0]["message"]["content"], alone("In the", 12));
  const auto chunks = stream("/v1/chat/completions", body);
  EXPECT_EQ(chunks.front()["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(chunks.front()["object"], "chat.completion.chunk");
  std::string text;
  for (const json& c : chunks) text += c["choices"][0]["delta"].value("content", "");
  EXPECT_EQ(text, alone("In the", 12));
  EXPECT_EQ(chunks.back()["choices"][0]["finish_reason"], "length");
  json none = body;
  none["model"] = "scripture";
  expect_error(ask("/v1/chat/completions", none), 400, "no chat template", "model");
}

TEST_F(serve_service, a_stop_string_ends_the_text_before_it) {
  const std::string whole = alone("In the", 30), stop = whole.substr(11, 5);
  const json o = ok("/v1/completions", {{"model", "scripture"},
                                        {"prompt", "In the"},
                                        {"max_tokens", 30},
                                        {"temperature", 0},
                                        {"stop", {"no such text", stop}}});
  EXPECT_EQ(o["choices"][0]["text"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(o["choices"][0]["finish_reason"], "stop");
}

TEST_F(serve_service, seeds_make_texts_again_and_sequences_differ) {
  const json body = {
      {"model", "scripture"}, {"prompt", "In the"}, {"max_tokens", 12}, {"temperature", 1.5}, {"n", 2}, {"seed", 7}};
  const json a = ok("/v1/completions", body), b = ok("/v1/completions", body);
  EXPECT_EQ(a["choices"], b["choices"]);
  EXPECT_NE(a["choices"][0]["text"], a["choices"][1]["text"]);
  json other = body;
  other["seed"] = 100;
  EXPECT_NE(ok("/v1/completions", other)["choices"], a["choices"]);
  // so small a part of the probability, or so likely a token, is the likeliest one
  for (const json& more : {json{{"top_p", 1e-6}}, json{{"top_k", 1}}, json{{"min_p", 1}}, json{{"top_p", 0}}}) {
    json likeliest = body;
    likeliest.update(more);
    EXPECT_EQ(ok("/v1/completions", likeliest)["choices"][0]["text"], alone("In the", 12)) << more;
  }
}

TEST_F(serve_service, the_greatest_seed_has_ones_after_it) {
  ok("/v1/completions", {{"model", "scripture"},
                         {"prompt", "In the"},
                         {"max_tokens", 1},
                         {"n", 2},
                         {"seed", std::numeric_limits<std::int64_t>::max()}});
}

TEST_F(serve_service, log_probabilities_are_the_models) {
  const json o =
      ok("/v1/completions",
         {{"model", "scripture"}, {"prompt", "In the"}, {"max_tokens", 5}, {"temperature", 0}, {"logprobs", 3}});
  const json scores = o["choices"][0]["logprobs"];
  ASSERT_EQ(scores["tokens"].size(), 5u);
  std::string text;
  for (std::size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(scores["text_offset"][k], text.size());
    text += scores["tokens"][k].get<std::string>();
    const json& top = scores["top_logprobs"][k];
    ASSERT_EQ(top.size(), 3u);
    // the likeliest one was taken
    EXPECT_EQ(top[scores["tokens"][k].get<std::string>()], scores["token_logprobs"][k]);
    for (const auto& [token, logprob] : top.items()) EXPECT_LE(logprob, scores["token_logprobs"][k]);
  }
  EXPECT_EQ(text, o["choices"][0]["text"]);
  const json chat = ok("/v1/chat/completions", {{"model", "chatty"},
                                                {"max_tokens", 5},
                                                {"temperature", 0},
                                                {"messages", {{{"role", "user"}, {"content", "In the"}}}},
                                                {"logprobs", true},
                                                {"top_logprobs", 2}});
  const json content = chat["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 5u);
  EXPECT_EQ(content[0]["logprob"], scores["token_logprobs"][0]);
  EXPECT_EQ(content[0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(content[0]["bytes"].size(), content[0]["token"].get<std::string>().size());
}

TEST_F(serve_service, the_likeliest_of_several_are_the_choices) {
  json body = {{"model", "scripture"}, {"prompt", "In the"}, {"max_tokens", 6},
               {"temperature", 1.5},   {"seed", 3},          {"logprobs", 0}};
  const auto mean = [](const json& choice) {
    double sum = 0;
    for (const json& s : choice["logprobs"]["token_logprobs"]) sum += s.get<double>();
    return sum / static_cast<double>(choice["logprobs"]["token_logprobs"].size());
  };
  body["n"] = 5;
  json all = ok("/v1/completions", body)["choices"];
  std::vector<std::pair<double, std::string>> order;
  for (const json& c : all) order.emplace_back(-mean(c), c["text"]);
  std::sort(order.begin(), order.end());
  ASSERT_NE(order[0].second, all[0]["text"]) << "a seed whose likeliest is not the first";
  body["n"] = 2, body["best_of"] = 5;
  body.erase("logprobs");
  const json best = ok("/v1/completions", body);
  ASSERT_EQ(best["choices"].size(), 2u);
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_EQ(best["choices"][k]["text"], order[k].second);
    EXPECT_EQ(best["choices"][k]["index"], k);
    EXPECT_EQ(best["choices"][k]["logprobs"], nullptr);
  }
  EXPECT_EQ(best["usage"]["completion_tokens"], 30) << "all that were made";
}

TEST_F(serve_service, tokens_of_the_request_end_a_text) {
  json body = {{"model", "scripture"}, {"prompt", "In the"}, {"max_tokens", 12}, {"temperature", 0}};
  const language::tokenizer t = language::tokenizer::load(scripture);
  const std::string whole = alone("In the", 12);
  body["logprobs"] = 0;
  const json tokens = ok("/v1/completions", body)["choices"][0]["logprobs"]["tokens"];
  language::token fifth = 0;
  while (t.token_bytes(fifth) != tokens[4].get<std::string>()) ++fifth;
  for (std::size_t k = 0; k < 4; ++k) ASSERT_NE(tokens[k], tokens[4]);
  body["stop_token_ids"] = {fifth};
  const json o = ok("/v1/completions", body);
  EXPECT_EQ(o["usage"]["completion_tokens"], 5);
  EXPECT_EQ(o["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(whole.starts_with(o["choices"][0]["text"].get<std::string>()));
  body["min_tokens"] = 6;  // it is barred before
  EXPECT_GT(ok("/v1/completions", body)["usage"]["completion_tokens"], 5);
  body["stop_token_ids"] = {1 << 30};
  expect_error(ask("/v1/completions", body), 400, "outside the vocabulary", "stop_token_ids");
}

TEST_F(serve_service, an_answer_is_one_of_several) {
  const json o = ok("/v1/chat/completions", {{"model", "chatty"},
                                             {"messages", {{{"role", "user"}, {"content", "In the"}}}},
                                             {"guided_choice", {"no (1)-#&~/", "yes? \\d"}},
                                             {"temperature", 0}});
  EXPECT_THAT(o["choices"][0]["message"]["content"], testing::AnyOf("no (1)-#&~/", "yes? \\d"));
  EXPECT_EQ(ok("/version")["version"], version_text);
}

TEST_F(serve_service, a_text_goes_on_where_it_is_told_to) {
  json body = {{"model", "scripture"}, {"prompt", "And he"}, {"max_tokens", 30}, {"temperature", 0}};
  body["logit_bias"] = {{"0", 100}};  // the end token
  const auto made = [&] { return ok("/v1/completions", body)["usage"]["completion_tokens"].get<int>(); };
  EXPECT_EQ(made(), 1);
  body["min_tokens"] = 7;
  EXPECT_EQ(made(), 8);
  body["ignore_eos"] = true;
  EXPECT_EQ(made(), 30);
}

TEST_F(serve_service, tells_tokens_of_texts_and_texts_of_tokens) {
  const json g = golden()[0];
  const json told = ok("/tokenize", {{"model", "scripture"}, {"content", g["prompt"]}});
  EXPECT_EQ(told["tokens"], g["prompt_ids"]);
  EXPECT_EQ(told["count"], g["prompt_ids"].size());
  EXPECT_GT(told["max_model_len"], 100);
  const json chat = {{"model", "chatty"}, {"messages", {{{"role", "user"}, {"content", g["prompt"]}}}}};
  EXPECT_EQ(ok("/tokenize", chat)["tokens"], g["prompt_ids"]);
  EXPECT_EQ(ok("/detokenize", {{"model", "scripture"}, {"tokens", g["prompt_ids"]}})["content"], g["prompt"]);
  for (const json& bad : {json({1, -1}), json({1 << 30}), json({"a"}), json("a")})
    expect_error(ask("/detokenize", {{"model", "scripture"}, {"tokens", bad}}), 400, "tokens of the model", "tokens");
}

TEST_F(serve_service, a_bias_bars_and_forces_tokens) {
  const json plain =
      ok("/v1/completions",
         {{"model", "scripture"}, {"prompt", "In the"}, {"max_tokens", 4}, {"temperature", 0}, {"logprobs", 0}});
  const std::string first = plain["choices"][0]["logprobs"]["tokens"][0];
  const language::tokenizer t = language::tokenizer::load(scripture);
  language::token id = 0;
  while (t.token_bytes(id) != first) ++id;
  const json barred = ok("/v1/completions", {{"model", "scripture"},
                                             {"prompt", "In the"},
                                             {"max_tokens", 4},
                                             {"temperature", 0},
                                             {"logprobs", 0},
                                             {"logit_bias", {{std::to_string(id), -100}}}});
  EXPECT_NE(barred["choices"][0]["logprobs"]["tokens"][0], first);
  const json forced = ok("/v1/completions", {{"model", "scripture"},
                                             {"prompt", "In the"},
                                             {"max_tokens", 3},
                                             {"temperature", 0},
                                             {"logit_bias", {{std::to_string(id), 100}}}});
  EXPECT_EQ(forced["choices"][0]["text"], first + first + first);
}

TEST_F(serve_service, answers_keep_to_schemas_and_tools) {
  const json messages = {{{"role", "user"}, {"content", "In the"}}};
  const json schema = {{"type", "object"},
                       {"properties", {{"ok", {{"type", "boolean"}}}}},
                       {"required", {"ok"}},
                       {"additionalProperties", false}};
  const json o =
      ok("/v1/chat/completions",
         {{"model", "chatty"},
          {"messages", messages},
          {"temperature", 0},
          {"response_format", {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}}}});
  EXPECT_TRUE(json::parse(o["choices"][0]["message"]["content"].get<std::string>())["ok"].is_boolean());
  EXPECT_EQ(o["choices"][0]["finish_reason"], "stop");
  const json tools = {{{"type", "function"}, {"function", {{"name", "answer"}, {"parameters", schema}}}}};
  const json body = {
      {"model", "chatty"}, {"messages", messages}, {"tools", tools}, {"tool_choice", "required"}, {"temperature", 0}};
  const json call = ok("/v1/chat/completions", body);
  EXPECT_EQ(call["choices"][0]["finish_reason"], "tool_calls");
  const json one = call["choices"][0]["message"]["tool_calls"][0];
  EXPECT_EQ(one["function"]["name"], "answer");
  EXPECT_TRUE(json::parse(one["function"]["arguments"].get<std::string>())["ok"].is_boolean());
  EXPECT_TRUE(call["choices"][0]["message"]["content"].is_null());
  bool streamed = false;
  for (const json& c : stream("/v1/chat/completions", body))
    streamed = streamed || c["choices"][0]["delta"].contains("tool_calls");
  EXPECT_TRUE(streamed);
  expect_error(
      ask("/v1/chat/completions",
          {{"model", "chatty"},
           {"messages", messages},
           {"response_format", {{"type", "json_schema"}, {"json_schema", {{"schema", {{"type", "thing"}}}}}}}}),
      400, "thing", "response_format");
}

}  // namespace
}  // namespace kiln::serve
