#include "kiln/interface/serve/service.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "kiln/generate/generator.hpp"
#include "kiln/interface/language_session.hpp"
#include "kiln/text/token_stream.hpp"

// A service over the trained model of the examples, without a socket.
namespace kiln::serve {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

const fs::path scripture = KILN_SOURCE_DIR "/examples/models/scripture";

class serve_service : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("kiln_serve_" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "chatty");
    for (const char* name : {"genai_config.json", "model.onnx", "tokenizer.json"})
      fs::copy_file(scripture / name, folder_ / "chatty" / name, fs::copy_options::overwrite_existing);
    std::ofstream(folder_ / "chatty/chat_template.jinja") << "{% for m in messages %}{{ m.content }}{% endfor %}";
    service_options o;
    o.models.models = {scripture.string(), (folder_ / "chatty").string()};
    o.models.compile.threads = 2;
    o.models.most_waiting = 40;
    o.log = [](std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(json::parse(line));
    };
    own_ = std::make_unique<service>(o);
  }
  static void TearDownTestSuite() {
    own_.reset();
    fs::remove_all(folder_);
  }
  static http_reply ask(const std::string& path, const json& body = nullptr, std::function<bool()> is_gone = {}) {
    return own_->answer(
        {body.is_null() ? "GET" : "POST", path, {}, body.is_null() ? "" : body.dump(), "test", is_gone});
  }
  static json ok(const std::string& path, const json& body = nullptr) {
    const http_reply r = ask(path, body);
    EXPECT_EQ(r.status, 200) << r.body;
    return json::parse(r.body);
  }
  // The chunks of a stream; the last one is [DONE].
  static std::vector<json> stream(const std::string& path, json body) {
    body["stream"] = true;
    const http_reply r = ask(path, body);
    EXPECT_EQ(r.type, "text/event-stream") << r.body;
    std::string all;
    r.stream([&](std::string_view piece) {
      all += piece;
      return true;
    });
    std::vector<json> out;
    const std::regex form("data: (.*)\n\n");
    for (std::sregex_iterator k(all.begin(), all.end(), form), end; k != end; ++k) {
      const std::string text = (*k)[1];
      if (text == "[DONE]") break;
      out.push_back(json::parse(text));
    }
    EXPECT_THAT(all, testing::EndsWith("data: [DONE]\n\n"));
    return out;
  }
  static void expect_error(const http_reply& r, int status, const std::string& why, const json& param) {
    EXPECT_EQ(r.status, status) << r.body;
    const json e = json::parse(r.body)["error"];
    EXPECT_THAT(e["message"].get<std::string>(), HasSubstr(why));
    EXPECT_EQ(e["param"], param);
  }
  static json golden() { return json::parse(std::ifstream(scripture / "golden.json")); }
  // What a model makes of a prompt alone, by a generator.
  static std::string alone(const std::string& prompt, std::int64_t made) {
    static const auto model = [] {
      const auto c = language::read_config(scripture);
      return language::load_model(c, language::session_of(c));
    }();
    const auto& t = model->text_tokenizer();
    const auto tokens = t.encode(prompt);
    auto search = model->settings().search;
    search.max_length = static_cast<std::int64_t>(tokens.size()) + made;
    language::generator g(model, search);
    g.append_tokens(tokens);
    language::token_stream text(t);
    std::string out;
    while (!g.is_done()) {
      g.generate_next_token();
      for (const auto id : g.next_tokens()) out += text.put(id);
    }
    return out + text.finish();
  }
  static inline std::unique_ptr<service> own_;
  static inline fs::path folder_;
  static inline std::mutex mutex_;
  static inline std::vector<json> lines_;
};

TEST_F(serve_service, lists_its_models) {
  const json all = ok("/v1/models");
  EXPECT_EQ(all["object"], "list");
  ASSERT_EQ(all["data"].size(), 2u);
  EXPECT_EQ(all["data"][1]["id"], "scripture");
  EXPECT_EQ(all["data"][1]["max_model_len"], 256);
  EXPECT_EQ(ok("/v1/models/chatty")["id"], "chatty");
  expect_error(ask("/v1/models/none"), 404, "no model none", "model");
}

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

TEST_F(serve_service, refusals_touch_nobody_else) {
  expect_error(ask("/v1/completions", {{"model", "none"}, {"prompt", "a"}}), 404, "no model none", "model");
  expect_error(ask("/v1/completions", {{"model", "scripture"}, {"prompt", ""}}), 400, "empty", nullptr);
  expect_error(ask("/v1/completions", {{"model", "scripture"}, {"prompt", {99999}}}), 400, "99999", nullptr);
  expect_error(ask("/v1/completions", {{"model", "scripture"}, {"prompt", "a"}, {"max_tokens", 256}}), 400, "256",
               "prompt");
  expect_error(ask("/v1/completions", {{"model", "scripture"}, {"prompt", json(std::vector<int>(256, 5))}}), 400,
               "256 tokens", "prompt");
  expect_error(ask("/v1/completions", {{"model", "scripture"}, {"prompt", "a"}, {"n", 41}}), 429, "40 sequences",
               nullptr);
  expect_error(ask("/v1/none"), 404, "GET /v1/none", nullptr);
  const http_reply wrong = ask("/v1/completions");
  expect_error(wrong, 405, "expected POST", nullptr);
  EXPECT_THAT(wrong.headers, Contains(std::pair<std::string, std::string>("Allow", "POST")));
  EXPECT_EQ(ok("/health")["status"], "ok");
  EXPECT_EQ(ok("/ready")["status"], "ready");
}

TEST_F(serve_service, a_client_that_leaves_ends_its_sequences) {
  const json body = {{"model", "scripture"}, {"prompt", "In the"}, {"max_tokens", 240}, {"n", 8}};
  int asked = 0;
  EXPECT_EQ(ask("/v1/completions", body, [&] { return ++asked > 2; }).status, 499);
  json streamed = body;
  streamed["stream"] = true;
  int pieces = 0;
  {
    const http_reply r = ask("/v1/completions", streamed);
    r.stream([&](std::string_view) { return ++pieces < 3; });
  }
  EXPECT_EQ(pieces, 3);
  ask("/v1/completions", streamed);  // nobody reads it
  // all of it is over long before 240 tokens are
  const auto count = [](const std::string& name) {
    const std::string all = ask("/metrics").body;
    const auto at = all.find(name);
    return at == all.npos ? -1. : std::stod(all.substr(at + name.size() + 1));
  };
  for (int k = 0; k < 200 && count("kiln_sequences{model=\"scripture\",state=\"running\"}") > 0; ++k)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(count("kiln_canceled_sequences_total{model=\"scripture\"}"), 24);
  const std::lock_guard lock(mutex_);
  EXPECT_TRUE(std::any_of(lines_.begin(), lines_.end(), [](const json& l) { return l.value("canceled", false); }));
}

TEST_F(serve_service, metrics_and_lines_tell_what_was) {
  ok("/v1/completions", {{"model", "scripture"}, {"prompt", "In the"}, {"max_tokens", 3}});
  const std::string all = ask("/metrics").body;
  EXPECT_THAT(all, AllOf(HasSubstr("kiln_requests_total{route=\"/v1/completions\",status=\"200\"}"),
                         HasSubstr("kiln_time_to_first_token_seconds_count{model=\"scripture\"}"),
                         HasSubstr("kiln_tokens_total{kind=\"made\",model=\"scripture\"}"),
                         HasSubstr("# TYPE kiln_request_seconds histogram")));
  const std::lock_guard lock(mutex_);
  const auto line = std::find_if(lines_.rbegin(), lines_.rend(),
                                 [](const json& l) { return l.value("route", "") == "/v1/completions"; });
  ASSERT_NE(line, lines_.rend());
  EXPECT_EQ((*line)["status"], 200);
  EXPECT_EQ((*line)["made_tokens"], 3);
  EXPECT_EQ((*line)["model"], "scripture");
  EXPECT_GE((*line)["ms"].get<double>(), (*line)["first_token_ms"].get<double>());
}

TEST_F(serve_service, models_load_again_while_requests_run) {
  const http_reply r =
      ask("/v1/completions",
          {{"model", "scripture"}, {"prompt", "In the"}, {"max_tokens", 20}, {"temperature", 0}, {"stream", true}});
  own_->reload();
  std::string all;
  r.stream([&](std::string_view piece) {
    all += piece;
    return true;
  });
  EXPECT_THAT(all, HasSubstr("\"finish_reason\":\"length\""));
  EXPECT_EQ(ok("/v1/models")["data"].size(), 2u);
}

TEST(serve_keys, are_asked_for) {
  service_options o;
  o.models.models = {"named=" + scripture.string()};
  o.api_keys = {"first", "second"};
  service s(o);
  const auto status = [&](const std::string& path, const std::string& key) {
    http_request r{"GET", path};
    if (!key.empty()) r.headers.emplace("authorization", key);
    return s.answer(r).status;
  };
  EXPECT_EQ(status("/v1/models/named", "Bearer second"), 200);
  for (const char* bad : {"", "second", "Bearer ", "Bearer secon", "Bearer second2", "Basic second"})
    EXPECT_EQ(status("/v1/models/named", bad), 401) << bad;
  EXPECT_EQ(status("/health", ""), 200);
  s.drain();
  EXPECT_EQ(status("/ready", ""), 503);
}

TEST(serve_models, faults_name_the_model) {
  model_options o;
  o.models = {"/no/such/folder"};
  EXPECT_THROW(load_models(o), error);
  o.models = {scripture.string(), scripture.string()};
  try {
    load_models(o);
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("two models are named scripture"));
  }
}

}  // namespace
}  // namespace kiln::serve
