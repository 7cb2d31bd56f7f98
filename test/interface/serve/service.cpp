#include "interface/serve/service.hpp"

#include <cstring>

#include "generate/weights/tiny_model.hpp"
#include "kiln/interface/serve/host.hpp"
#include "kiln/interface/serve/tracer.hpp"

// What those who run a server ask of it, and what it refuses.
namespace kiln::serve {
namespace {

TEST_F(serve_service, lists_its_models) {
  const json all = ok("/v1/models");
  EXPECT_EQ(all["object"], "list");
  ASSERT_EQ(all["data"].size(), 2u);
  EXPECT_EQ(all["data"][1]["id"], "scripture");
  EXPECT_EQ(all["data"][1]["max_model_len"], 256);
  EXPECT_EQ(ok("/v1/models/chatty")["id"], "chatty");
  expect_error(ask("/v1/models/none"), 404, "no model none", "model");
}

TEST_F(serve_service, has_a_page_that_asks_it_alone) {
  const http_reply r = ask("/");
  EXPECT_EQ(r.type, "text/html; charset=utf-8");
  EXPECT_THAT(r.body, AllOf(HasSubstr("v1/chat/completions"), testing::Not(HasSubstr("http"))));
  EXPECT_THAT(r.headers.at(0).second, HasSubstr("connect-src 'self'"));
}

TEST_F(serve_service, refusals_touch_nobody_else) {
  expect_error(ask("/v1/completions", {{"model", "none"}, {"prompt", "a"}}), 404,
               "no language model none: expected one of chatty, scripture", "model");
  expect_error(ask("/v1/completions", {{"prompt", "a"}}), 400, "model: expected one of chatty, scripture", "model");
  expect_error(ask("/chat/completions", json::object()), 404, "did you mean /v1/chat/completions?", nullptr);
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
  json streamed = body;
  streamed["stream"] = true;
  const auto count = [](const std::string& name) {
    const std::string all = ask("/metrics").body;
    const auto at = all.find(name);
    return at == all.npos ? -1. : std::stod(all.substr(at + name.size() + 1));
  };
  // All of it is over long before 240 tokens are, unless the machine has no time for the client: one of some tries.
  const auto cancels = [&](const std::function<void()>& ask_and_leave) {
    const auto canceled = [&] { return std::max(count("kiln_canceled_sequences_total{model=\"scripture\"}"), 0.); };
    for (int tries = 0; tries < 5; ++tries) {
      const double all = canceled() + 8;
      ask_and_leave();
      for (int k = 0; k < 2000 && canceled() < all; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (canceled() == all) return true;
    }
    return false;
  };
  int status = 0, pieces = 0;
  EXPECT_TRUE(cancels([&] {
    int asked = 0;
    status = ask("/v1/completions", body, [&] { return ++asked > 2; }).status;
  }));
  EXPECT_EQ(status, 499);
  EXPECT_TRUE(cancels([&] {
    pieces = 0;
    const http_reply r = ask("/v1/completions", streamed);
    r.stream([&](std::string_view) { return ++pieces < 3; });
  }));
  EXPECT_EQ(pieces, 3);
  EXPECT_TRUE(cancels([&] { ask("/v1/completions", streamed); }));  // nobody reads it
  EXPECT_EQ(count("kiln_sequences{model=\"scripture\",state=\"running\"}"), 0);
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
  for (const char* path : {"/v1/completions", "/tokenize", "/detokenize"}) {
    EXPECT_TRUE(s.refusal({"POST", path})) << path;
    EXPECT_EQ(s.answer({"POST", path}).status, 401) << path;
  }
  // without a name a request is for the only model
  const http_request alone{"POST", "/v1/completions", {{"authorization", "Bearer first"}}, R"({"prompt": "In the"})"};
  EXPECT_EQ(json::parse(s.answer(alone).body)["model"], "named");
  // KServe's paths have its form of errors
  http_request head{"POST", "/v2/models/named/infer"};
  const auto refused = s.refusal(head);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 401);
  EXPECT_THAT(json::parse(refused->body)["error"].get<std::string>(), HasSubstr("API key"));
  EXPECT_THAT(refused->headers, Contains(std::pair<std::string, std::string>("WWW-Authenticate", "Bearer")));
  EXPECT_THAT(s.answer({"GET", "/metrics"}).body, HasSubstr("kiln_requests_total{route=\"/v2\",status=\"401\"}"));
  head.headers.emplace("authorization", "Bearer first");
  EXPECT_FALSE(s.refusal(head));
  EXPECT_FALSE(s.refusal({"GET", "/health"}));
  s.drain();
  EXPECT_EQ(status("/ready", ""), 503);
  // an empty one would open the server
  o.api_keys = {"first", ""};
  EXPECT_THROW(service{o}, error);
}

TEST(serve_end, cuts_what_runs_on_models_before_a_reload_too) {
  service_options o;
  o.models.models = {scripture.string()};
  service s(o);
  http_request r{"POST", "/v1/completions"};
  r.body = R"({"model": "scripture", "prompt": "In the", "max_tokens": 250, "n": 128, "stream": true,
    "logit_bias": {"0": -100}})";
  const http_reply before = s.answer(r);
  ASSERT_TRUE(before.stream);
  s.reload();
  s.stop();
  std::string all;
  before.stream([&](std::string_view piece) {
    all += piece;
    return true;
  });
  EXPECT_THAT(all, AllOf(HasSubstr("shutting down"), HasSubstr("\"code\":\"shutting_down\""),
                         testing::EndsWith("data: [DONE]\n\n")));
  EXPECT_EQ(s.answer(r).status, 503);
}

TEST(serve_end, a_request_has_its_time) {
  service_options o;
  o.models.models = {scripture.string()};
  o.longest = std::chrono::milliseconds(30);
  service s(o);
  http_request r{"POST", "/v1/completions"};
  r.body = R"({"model": "scripture", "prompt": "In the", "max_tokens": 250, "n": 128, "logit_bias": {"0": -100}})";
  const http_reply whole = s.answer(r);
  EXPECT_EQ(whole.status, 504);
  EXPECT_EQ(json::parse(whole.body)["error"]["code"], "timeout");
  // what it had begun is ended, and does not hold up the next one
  r.body = R"({"model": "scripture", "prompt": "In the", "max_tokens": 1})";
  int status = 0;
  for (int k = 0; k < 100 && status != 200; ++k) status = s.answer(r).status;
  EXPECT_EQ(status, 200);
  EXPECT_GE(s.models()->language.at("scripture")->engine->statistics().canceled, 128u);
}

TEST(serve_traces, go_on_where_the_caller_is) {
  request_record r;
  const std::string trace = "0af7651916cd43dd8448eb211c80319c", parent = "b7ad6b7169203331";
  place_in_trace(r, "00-" + trace + "-" + parent + "-01");
  EXPECT_EQ(r.trace_id, trace);
  EXPECT_EQ(r.parent_id, parent);
  EXPECT_EQ(r.span_id.size(), 16u);
  for (const std::string& bad :
       {std::string(), "01-" + trace + "-" + parent + "-01", "00-" + trace + "-" + parent,
        "00-" + std::string(32, '0') + "-" + parent + "-01", "00-" + trace + "-" + std::string(16, 'g') + "-01"}) {
    place_in_trace(r, bad);
    EXPECT_NE(r.trace_id, trace) << bad;
    EXPECT_EQ(r.trace_id.size(), 32u);
    EXPECT_TRUE(r.parent_id.empty());
  }
}

TEST(serve_traces, come_to_a_collector) {
  std::mutex mutex;
  std::vector<http_request> came;
  http_host collector({.port = 0}, [&](const http_request& r) {
    const std::lock_guard lock(mutex);
    came.push_back(r);
    return http_reply{};
  });
  std::thread runs([&] { collector.run(); });
  {
    service_options o;
    o.models.models = {scripture.string()};
    o.collector = "http://127.0.0.1:" + std::to_string(collector.port());
    service s(o);
    http_request r{"POST", "/v1/completions"};
    r.headers["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    r.body = R"({"model": "scripture", "prompt": "In the", "max_tokens": 2})";
    EXPECT_EQ(s.answer(r).status, 200);
  }
  collector.stop();
  runs.join();
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].path, "/v1/traces");
  const json span = json::parse(came[0].body)["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
  EXPECT_EQ(span["traceId"], "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(span["parentSpanId"], "b7ad6b7169203331");
  EXPECT_EQ(span["name"], "POST /v1/completions");
  EXPECT_LT(std::stoull(span["startTimeUnixNano"].get<std::string>()),
            std::stoull(span["endTimeUnixNano"].get<std::string>()));
  EXPECT_THAT(span["attributes"].dump(), AllOf(HasSubstr("gen_ai.usage.output_tokens"), HasSubstr("\"2\"")));
  EXPECT_THROW(tracer("nowhere", {}), error);
}

// Of what waits the lower number runs first, whenever it came; the command line's keys are over those of folders.
TEST(serve_models, run_by_priority_and_as_the_command_line_says) {
  service_options o;
  o.models.models = {scripture.string()};
  o.models.engine.max_requests = 1, o.models.engine_is_given = true;
  o.models.overlay = R"({"model": {"kv_cache_type": "f16"}})";
  service s(o);
  const auto& entry = *s.models()->language.at("scripture");
  EXPECT_EQ(entry.model->block_bytes(), 32u * 6 * 2 * 2 * 32 * 2);
  std::mutex mutex;
  std::vector<int> ended;
  std::vector<std::thread> threads;
  const auto ask = [&](int priority, int tokens, int choices) {
    const std::size_t before = entry.engine->statistics().running + entry.engine->statistics().waiting;
    threads.emplace_back([&, priority, tokens, choices] {
      http_request r{"POST", "/v1/completions"};
      r.body = json({{"model", "scripture"},
                     {"prompt", "In the"},
                     {"max_tokens", tokens},
                     {"n", choices},
                     {"priority", priority},
                     {"logit_bias", {{"0", -100}}}})
                   .dump();
      EXPECT_EQ(s.answer(r).status, 200);
      const std::lock_guard lock(mutex);
      ended.push_back(priority);
    });
    for (int k = 0; k < 2000; ++k) {
      const auto now = entry.engine->statistics();
      if (now.running + now.waiting > before) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  // of the first one's sequences those that wait are behind -7, and before the others
  ask(0, 250, 8), ask(7, 5, 1), ask(-7, 5, 1), ask(3, 5, 1);
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(ended, testing::ElementsAre(-7, 0, 3, 7));
  o.models.overlay = R"({"model": {"kv_cache_type": "int3"}})";
  EXPECT_THROW(load_models(o.models), error);
}

TEST(serve_models, take_a_context_and_a_template) {
  service_options o;
  o.models.models = {scripture.string()};
  o.models.overlay = R"({"model": {"context_length": 32}})";
  o.models.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}";
  service s(o);
  http_request r{"POST", "/v1/chat/completions"};
  r.body = R"({"messages": [{"role": "user", "content": "In the"}], "max_tokens": 3})";
  EXPECT_EQ(s.answer(r).status, 200) << s.answer(r).body;
  r.body = R"({"messages": [{"role": "user", "content": "In the"}], "max_tokens": 32})";
  EXPECT_THAT(s.answer(r).body, HasSubstr("the model's context has 32 tokens"));
  o.models.chat_template = "{% for %}";
  EXPECT_THROW(load_models(o.models), error);
  o.models.chat_template.clear();
  o.models.overlay = R"({"model": {"context_length": 512}})";  // the graph's own is 256
  try {
    load_models(o.models);
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("at most the 256 tokens"), HasSubstr("found 512")));
  }
  // whatever was said before
  auto c = language::read_config(scripture);
  for (const char* n : {"32", "512"}) language::overlay(c, R"({"model": {"context_length": )" + std::string(n) + "}}");
  EXPECT_THROW(language::load_model(c, language::session_of(c)), error);
}

TEST(serve_models, keys_that_none_takes_are_refused) {
  model_options o;
  o.compile.threads = 1;
  o.models = {(scripture / "model.onnx").string()};
  o.chat_template = "a";
  EXPECT_THROW(load_models(o), error);
  o.chat_template.clear();
  o.overlay = "{}";
  EXPECT_EQ(load_models(o)->tensors.size(), 1u);
  for (const auto& [overlay, key] : {std::pair(R"({"model": {"weight_type": "int4"}})", "model.weight_type"),
                                     std::pair(R"({"speculative": {"ngram_size": 3}})", "speculative.ngram_size")}) {
    o.overlay = overlay;
    try {
      load_models(o);
      ADD_FAILURE() << overlay;
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      EXPECT_THAT(e.what(), AllOf(HasSubstr(key), HasSubstr("of language models"), HasSubstr("found no such model")));
    }
  }
  o.models.push_back(scripture.string());
  EXPECT_EQ(load_models(o)->language.size(), 1u);
}

TEST(serve_models, faults_name_the_model) {
  model_options o;
  o.models = {"/no/such/folder"};
  EXPECT_THROW(load_models(o), error);
  const test::temporary_folder folder;
  folder.write("bad/genai_config.json", "{}");
  o.models = {(folder.path() / "bad").string()};
  try {
    load_models(o);
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_THAT(e.what(), HasSubstr("kiln serve " + o.models[0] + ": "));
  }
  // with the place that the fault is at
  language::testing::tiny_model m = language::testing::tiny_llama();
  for (auto& t : m.tensors)
    if (t.name == "model.layers.1.mlp.up_proj.weight") std::memset(t.bytes.data(), 0xff, 4);  // a NaN
  folder.write("nan/config.json", m.config.dump());
  folder.write("nan/model.safetensors", language::testing::safetensors_file(m.tensors));
  o.models = {(folder.path() / "nan").string()};
  o.overlay = R"({"model": {"weight_type": "int8"}})";
  try {
    load_models(o);
    ADD_FAILURE();
  } catch (const error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("kiln serve " + o.models[0] + ": "), HasSubstr("mlp.up_proj.weight")));
  }
  o.overlay.clear();
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
