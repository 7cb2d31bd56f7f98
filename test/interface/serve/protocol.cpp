#include "interface/serve/service.hpp"
#include "kiln/interface/serve/completion_request.hpp"

// Requests of OpenAI's interface, as text.
namespace kiln::serve {
namespace {

using testing::ElementsAre;

using tool_use = completion_request::tool_use;

void expect_refused(bool is_chat, const std::string& body, const std::string& param, const std::string& why) {
  try {
    is_chat ? read_chat_request(body) : read_text_request(body);
    ADD_FAILURE() << "taken: " << body.substr(0, 200);
  } catch (const api_error& e) {
    EXPECT_EQ(e.status(), 400);
    EXPECT_EQ(e.param().value_or(""), param) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(why)) << body.substr(0, 200);
  }
}

// A request with further fields.
std::string text_with(const std::string& more) { return R"({"model": "m", "prompt": "a", )" + more + "}"; }
std::string chat_with(const std::string& more) {
  return R"({"model": "m", "messages": [{"role": "user", "content": "a"}], )" + more + "}";
}

TEST(serve_protocol, a_text_request_has_every_field) {
  const auto r = read_text_request(R"({"model": "m", "prompt": ["a", "b"], "n": 2, "max_tokens": 7, "temperature": 0.5,
    "top_p": 0.25, "top_k": 3, "min_p": 0.125, "repetition_penalty": 1.5, "presence_penalty": -1,
    "frequency_penalty": 2, "seed": -9, "stop": ["x", "y"], "logit_bias": {"5": -100, "6": 2}, "logprobs": 4,
    "stream": true, "stream_options": {"include_usage": true}, "user": "me", "best_of": 2, "priority": -3})");
  EXPECT_EQ(r.model, "m");
  EXPECT_FALSE(r.is_chat);
  EXPECT_THAT(r.prompts, ElementsAre(completion_request::prompt("a"), completion_request::prompt("b")));
  EXPECT_EQ(r.choices, 2u);
  EXPECT_EQ(r.max_tokens, 7);
  EXPECT_EQ(r.temperature, 0.5);
  EXPECT_EQ(r.top_p, 0.25);
  EXPECT_EQ(r.top_k, 3);
  EXPECT_EQ(r.min_p, 0.125);
  EXPECT_EQ(r.repetition_penalty, 1.5);
  EXPECT_EQ(r.presence_penalty, -1);
  EXPECT_EQ(r.frequency_penalty, 2);
  EXPECT_EQ(r.seed, -9);
  EXPECT_EQ(r.priority, -3);
  EXPECT_EQ(r.best_of, 2u);
  EXPECT_THAT(r.stop, ElementsAre("x", "y"));
  EXPECT_THAT(r.bias, ElementsAre(std::pair(5, -100.f), std::pair(6, 2.f)));
  EXPECT_EQ(r.logprobs, 4u);
  EXPECT_TRUE(r.stream && r.include_usage);
}

TEST(serve_protocol, prompts_are_texts_or_tokens) {
  EXPECT_THAT(read_text_request(R"({"model": "m", "prompt": [1, 2]})").prompts,
              ElementsAre(completion_request::prompt(language::tokens{1, 2})));
  EXPECT_THAT(
      read_text_request(R"({"model": "m", "prompt": [[1], [2, 3]]})").prompts,
      ElementsAre(completion_request::prompt(language::tokens{1}), completion_request::prompt(language::tokens{2, 3})));
  for (const char* bad : {"[]", "[[]]", "[-1]", "[1.5]", "3", "{}", "[null]", "[99999999999]"})
    expect_refused(false, std::string(R"({"model": "m", "prompt": )") + bad + "}", "prompt", "a string, tokens");
}

TEST(serve_protocol, refusals_name_the_field_and_what_was_found) {
  expect_refused(false, "", "", "no JSON");
  expect_refused(false, "[]", "", "expected a JSON object, found an array");
  expect_refused(false, R"({"model": 3, "prompt": "a"})", "model", "found 3");
  expect_refused(false, text_with(R"("temperature": 3)"), "temperature", "a number from 0 to 2, found 3");
  expect_refused(false, text_with(R"("temperature": "1")"), "temperature", "found \"1\"");
  expect_refused(false, text_with(R"("n": 0)"), "n", "a whole number from 1 to 128, found 0");
  expect_refused(false, text_with(R"("n": 1.0)"), "n", "a whole number");
  expect_refused(false, text_with(R"("max_tokens": 18446744073709551615)"), "max_tokens", "from 0 on");
  expect_refused(false, text_with(R"("stop": ["a", ""])"), "stop", "not empty");
  expect_refused(false, text_with(R"("logit_bias": {"a": 1})"), "logit_bias", "found \"a\"");
  expect_refused(false, text_with(R"("logit_bias": {"1": 101})"), "logit_bias.1", "from -100 to 100");
  expect_refused(false, text_with(R"("stream_options": {})"), "stream_options", "without stream");
  expect_refused(false, text_with(R"("suffix": "z")"), "suffix", "continue texts");
  expect_refused(false, text_with(R"("best_of": 1, "n": 2)"), "best_of", "at least n, found 1");
  expect_refused(false, text_with(R"("best_of": 3, "stream": true)"), "best_of", "as many as n in a stream");
  expect_refused(false, R"({"prompt": ["a", "b"], "best_of": 65})", "best_of", "at most 128, found 130");
  expect_refused(false, text_with(R"("max_tokens": 0)"), "max_tokens", "at least 1 without echo");
  expect_refused(true, chat_with(R"("max_tokens": 0)"), "max_tokens", "from 1 on");
  expect_refused(false, text_with(R"("stop_token_ids": ["a"])"), "stop_token_ids", "a list of at most 16 tokens");
  expect_refused(false, text_with(R"("stop_token_ids": [1], "ignore_eos": true)"), "ignore_eos", "stop_token_ids");
  expect_refused(false, text_with(R"("max_tokens": 3, "min_tokens": 4)"), "min_tokens", "at most the 3 of max_tokens");
  expect_refused(false, text_with(R"("min_tokens": 9223372036854775807)"), "min_tokens",
                 "at most the 16 of max_tokens");
  for (const std::string key : {"\"min_tokens\": 1", "\"ignore_eos\": true"})
    expect_refused(true, chat_with(key + R"(, "response_format": {"type": "json_object"})"),
                   key.substr(1, key.find('"', 1) - 1), "beside a form");
  expect_refused(false, text_with(R"("colour": 1)"), "colour", "unknown field");
  expect_refused(true, R"({"model": "m", "messages": []})", "messages", "a list of messages");
  expect_refused(true, R"({"model": "m", "messages": [{"content": "a"}]})", "messages[0].role", "a string");
  expect_refused(true, R"({"model": "m", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
                 "messages[0].content[0].type", "text, which alone");
  expect_refused(
      true, R"({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "3"}}]}]})",
      "messages[0].tool_calls[0].function.arguments", "function.arguments: expected a JSON object, found 3");
  expect_refused(true, chat_with(R"("top_logprobs": 2)"), "top_logprobs", "without logprobs");
  expect_refused(true, chat_with(R"("tool_choice": "auto")"), "tool_choice", "without tools");
  expect_refused(true, chat_with(R"("response_format": {"type": "xml"})"), "response_format.type", "json_schema");
}

TEST(serve_protocol, a_request_for_tokens_has_one_text) {
  const auto r = read_token_request(R"({"content": "a", "add_special": true})");
  EXPECT_EQ(std::get<std::string>(r.prompts.at(0)), "a");
  EXPECT_TRUE(r.adds_special && !r.is_chat && r.model.empty());
  EXPECT_TRUE(read_token_request(R"({"messages": [{"role": "user", "content": "a"}]})").is_chat);
  for (const char* bad : {"{}", R"({"content": "a", "prompt": "b"})", R"({"content": 1})",
                          R"({"prompt": "a", "messages": [{"role": "user", "content": "a"}]})"})
    EXPECT_THROW(read_token_request(bad), api_error) << bad;
}

TEST(serve_protocol, a_body_has_bounds) {
  expect_refused(false, text_with("\"user\": " + std::string(100000, '[') + std::string(100000, ']')), "",
                 "nest deeper");
  std::string wide = "\"metadata\": {";
  for (int k = 0; k < 1025; ++k) wide += (k ? ", \"" : "\"") + std::to_string(k) + "\": 0";
  expect_refused(false, text_with(wide + "}"), "", "more than 1024 keys");
  // null is as if a field were not there
  EXPECT_FALSE(read_text_request(text_with(R"("seed": null, "stop": null, "logit_bias": null)")).seed);
}

TEST(serve_protocol, messages_become_what_templates_take) {
  const auto r = read_chat_request(R"({"model": "m", "max_completion_tokens": 3, "messages": [
    {"role": "developer", "content": "d"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "2"}]})");
  const json m = json::parse(r.messages_json);
  EXPECT_EQ(m[0]["role"], "system");
  EXPECT_EQ(m[1]["content"], "ab");
  EXPECT_EQ(m[2]["tool_calls"][0]["function"]["arguments"], json({{"x", 1}}));
  EXPECT_EQ(m[3]["tool_call_id"], "1");
  EXPECT_EQ(r.max_tokens, 3);
}

TEST(serve_protocol, tools_and_formats_are_guides) {
  const std::string tools = R"("tools": [{"type": "function", "function": {"name": "f",
      "parameters": {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "string"}}}}},
    {"type": "function", "function": {"name": "g"}}])";
  EXPECT_EQ(read_chat_request(chat_with(tools)).tools, tool_use::automatic);
  EXPECT_TRUE(read_chat_request(chat_with(tools)).guidance.empty());
  const auto named =
      read_chat_request(chat_with(tools + R"(, "tool_choice": {"type": "function", "function": {"name": "f"}})"));
  EXPECT_EQ(named.tools, tool_use::named);
  const json schema = json::parse(named.guidance);
  EXPECT_EQ(schema["properties"]["name"]["const"], "f");
  EXPECT_LT(named.guidance.find("\"b\""), named.guidance.find("\"a\""));  // in the order they were written in
  const auto required = read_chat_request(chat_with(tools + R"(, "tool_choice": "required")"));
  EXPECT_EQ(json::parse(required.guidance)["anyOf"].size(), 2u);
  EXPECT_EQ(read_chat_request(chat_with(tools + R"(, "tool_choice": "none")")).tools, tool_use::none);
  expect_refused(true, chat_with(tools + R"(, "tool_choice": {"function": {"name": "h"}})"),
                 "tool_choice.function.name", "a function of tools");
  expect_refused(true, chat_with(tools + R"(, "tool_choice": {"function": {"name": "f"}, "mode": 1})"),
                 "tool_choice.mode", "unknown field");
  const auto schema_of = read_chat_request(chat_with(
      R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "null"}}})"));
  EXPECT_EQ(schema_of.guidance_kind, "json_schema");
  EXPECT_EQ(json::parse(schema_of.guidance), json({{"type", "null"}}));
}

TEST(serve_protocol, forms_of_answers_have_vllms_and_llama_cpps_names) {
  const auto read = [](const std::string& more) { return read_text_request(text_with(more)); };
  const auto is = [](const completion_request& r, const std::string& kind, const std::string& text,
                     const std::string& field) {
    EXPECT_EQ(r.guidance_kind, kind) << field;
    EXPECT_EQ(r.guidance, text) << field;
    EXPECT_EQ(r.guidance_field, field);
  };
  const std::string schema = R"({"type":"object"})";
  is(read("\"guided_json\": " + schema), "json_schema", schema, "guided_json");
  is(read(R"("guided_json": "{\"type\": \"object\"}")"), "json_schema", schema, "guided_json");
  is(read("\"json_schema\": " + schema), "json_schema", schema, "json_schema");
  is(read(R"("guided_regex": "a+")"), "regex", "a+", "guided_regex");
  is(read(R"("guided_grammar": "start: \"a\"")"), "lark_grammar", "start: \"a\"", "guided_grammar");
  is(read(R"("guided_choice": ["yes", "a.b\\"])"), "regex", R"((?:yes)|(?:a\.b\\))", "guided_choice");
  is(read(R"("structured_outputs": {"choice": ["a"]})"), "regex", "(?:a)", "structured_outputs.choice");
  is(read(R"("structured_outputs": {"json_object": true})"), "json_schema", schema, "structured_outputs.json_object");
  expect_refused(false, text_with(R"("guided_choice": [])"), "guided_choice", "texts that are not empty");
  expect_refused(false, text_with(R"("guided_json": [])"), "guided_json", "a JSON schema");
  expect_refused(false, text_with(R"("guided_json": "{")"), "guided_json", "guided_json is no JSON");
  expect_refused(false, text_with(R"("structured_outputs": {"json": "[["})"), "structured_outputs.json",
                 "structured_outputs.json is no JSON");
  expect_refused(false, text_with("\"json_schema\": \"" + std::string(65, '[') + '"'), "json_schema",
                 "json_schema: values nest deeper");
  for (const std::string name : {"guided_regex", "guided_grammar"})
    expect_refused(false, text_with('"' + name + R"(": "")"), name, "a text that is not empty, found \"\"");
  expect_refused(false, text_with(R"("structured_outputs": {"regex": ""})"), "structured_outputs.regex", "not empty");
  expect_refused(false, text_with(R"("guided_regex": "a", "guided_json": {})"), "guided_regex", "beside guided_json");
  expect_refused(false, text_with(R"("structured_outputs": {"colour": 1})"), "structured_outputs.colour", "unknown");
}

TEST(serve_protocol, an_error_has_openais_form) {
  const json j = json::parse(to_json(api_error("no", "p", "c", 429)));
  EXPECT_EQ(j, json({{"error", {{"message", "no"}, {"type", "rate_limit_error"}, {"param", "p"}, {"code", "c"}}}}));
  EXPECT_EQ(json::parse(to_json(api_error("\xff", {}, {}, 500)))["error"]["param"], nullptr);
}

TEST(serve_origins, are_those_that_are_allowed) {
  service_options o;
  o.models.models = {scripture.string()};
  o.api_keys = {"key"};
  const auto header = [](const http_reply& r, const std::string& name) {
    for (const auto& [own, value] : r.headers)
      if (own == name) return value;
    return std::string("none");
  };
  const std::string from = "http://localhost:3000", allowed = "Access-Control-Allow-Origin";
  http_request asks{"GET", "/v1/models", {{"origin", from}, {"authorization", "Bearer key"}}};
  // a browser asks without a key whether it may send one
  const http_request preflight{"OPTIONS",
                               "/v1/chat/completions",
                               {{"origin", from},
                                {"access-control-request-method", "POST"},
                                {"access-control-request-headers", "authorization,content-type"}}};
  {
    service closed(o);
    EXPECT_EQ(header(closed.answer(asks), allowed), "none");
    EXPECT_EQ(closed.answer(preflight).status, 401);
  }
  o.origins = {"http://other", from};
  service s(o);
  EXPECT_EQ(header(s.answer(asks), allowed), from);
  EXPECT_FALSE(s.refusal(preflight));
  const http_reply may = s.answer(preflight);
  EXPECT_EQ(may.status, 204);
  EXPECT_EQ(header(may, allowed), from);
  EXPECT_EQ(header(may, "Access-Control-Allow-Headers"), "authorization,content-type");
  asks.headers["authorization"] = "";
  EXPECT_EQ(s.answer(asks).status, 401);
  EXPECT_EQ(header(s.answer(asks), allowed), from) << "a page can read why";
  const http_reply refused = s.refuse(preflight, api_error("too much", {}, "body_too_large", 413));
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(header(refused, allowed), from) << "whatever the host refuses";
  EXPECT_THAT(refused.body, HasSubstr("body_too_large"));
  EXPECT_NE(header(refused, "X-Request-Id"), "none");
  asks.headers["origin"] = "http://evil";
  EXPECT_EQ(header(s.answer(asks), allowed), "none");
}

}  // namespace
}  // namespace kiln::serve
