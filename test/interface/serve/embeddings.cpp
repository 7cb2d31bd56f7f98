#include <cstring>
#include <functional>

#include "generate/weights/embedding_folder.hpp"
#include "interface/serve/service.hpp"

// Embeddings of texts, beside a language model.
namespace kiln::serve {
namespace {

class serve_embeddings : public testing::Test {
 protected:
  void SetUp() override {
    fs::copy_file(scripture / "tokenizer.json", folder_.own.path() / "tokenizer.json");
    service_options o;
    o.models.models = {"words=" + folder_.own.path().string(), scripture.string()};
    o.models.compile.threads = 1;
    own_ = std::make_unique<service>(o);
  }
  http_reply ask(const json& body) { return own_->answer({"POST", "/v1/embeddings", {}, body.dump(), "test", {}}); }
  http_reply ask(const json& body, std::function<bool()> is_gone) {
    http_request r{"POST", "/v1/embeddings", {}, body.dump(), "test", {}};
    r.is_gone = std::move(is_gone);
    return own_->answer(r);
  }
  json ok(const json& body) {
    const http_reply r = ask(body);
    EXPECT_EQ(r.status, 200) << r.body;
    return json::parse(r.body);
  }
  void refused(const json& body, int status, const std::string& why, const json& param, const json& code = nullptr) {
    const http_reply r = ask(body);
    EXPECT_EQ(r.status, status) << r.body;
    const json e = json::parse(r.body)["error"];
    EXPECT_THAT(e["message"].get<std::string>(), HasSubstr(why));
    EXPECT_EQ(e["param"], param);
    EXPECT_EQ(e["code"], code);
  }
  // The mean of the states, of length 1.
  static std::vector<double> expected(const language::tokens& text, std::size_t dimensions = 6) {
    std::vector<double> out(dimensions, 0);
    double length = 0;
    for (std::size_t k = 0; k < dimensions; ++k) {
      for (std::size_t t = 0; t < text.size(); ++t)
        out[k] += language::testing::embedding_folder::state(text[t], static_cast<std::int64_t>(t),
                                                             static_cast<std::int64_t>(k));
      length += out[k] * out[k];
    }
    for (double& x : out) x /= std::sqrt(length);
    return out;
  }
  static void expect_near(const json& found, const std::vector<double>& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t k = 0; k < wanted.size(); ++k) EXPECT_NEAR(found[k].get<double>(), wanted[k], 1e-6) << k;
  }
  static std::vector<std::uint8_t> bytes_of(const std::string& base64) {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::vector<std::uint8_t> out;
    EXPECT_EQ(base64.size() % 4, 0u);
    for (std::size_t k = 0; k < base64.size(); k += 4) {
      std::uint32_t bits = 0;
      int there = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        const bool is = base64[k + i] != '=';
        bits = bits << 6 | static_cast<std::uint32_t>(is ? digits.find(base64[k + i]) : 0);
        there += is;
      }
      for (int i = 0; i < there - 1; ++i) out.push_back(static_cast<std::uint8_t>(bits >> (16 - 8 * i)));
    }
    return out;
  }
  const language::testing::embedding_folder folder_;
  std::unique_ptr<service> own_;
};

TEST_F(serve_embeddings, take_texts_and_tokens) {
  const auto words = language::tokenizer::load(scripture);
  const std::string text = "In the beginning", other = "And the king";
  const language::encode_options special{.add_special_tokens = true};
  const auto ids = words.encode(text, special), others = words.encode(other, special);
  const json one = ok({{"model", "words"}, {"input", text}});
  EXPECT_EQ(one["object"], "list");
  EXPECT_EQ(one["model"], "words");
  EXPECT_EQ(one["data"].size(), 1u);
  EXPECT_EQ(one["data"][0]["object"], "embedding");
  EXPECT_EQ(one["usage"]["prompt_tokens"], ids.size());
  EXPECT_EQ(one["usage"]["total_tokens"], ids.size());
  expect_near(one["data"][0]["embedding"], expected(ids));
  const json all = ok({{"model", "words"}, {"input", {text, other}}, {"user", "u"}});
  expect_near(all["data"][0]["embedding"], expected(ids));
  expect_near(all["data"][1]["embedding"], expected(others));
  EXPECT_EQ(all["data"][1]["index"], 1);
  EXPECT_EQ(all["usage"]["prompt_tokens"], ids.size() + others.size());
  expect_near(ok({{"model", "words"}, {"input", ids}})["data"][0]["embedding"], expected(ids));
  const json lists = ok({{"model", "words"}, {"input", {others, ids}}, {"dimensions", 2}});
  expect_near(lists["data"][0]["embedding"], expected(others, 2));
  expect_near(lists["data"][1]["embedding"], expected(ids, 2));
}

TEST_F(serve_embeddings, are_numbers_or_their_bytes) {
  for (const int dimensions : {1, 2, 3, 6}) {
    const json body = {{"model", "words"}, {"input", "the king"}, {"dimensions", dimensions}};
    json as_bytes = body;
    as_bytes["encoding_format"] = "base64";
    const auto bytes = bytes_of(ok(as_bytes)["data"][0]["embedding"].get<std::string>());
    const json numbers = ok(body)["data"][0]["embedding"];
    ASSERT_EQ(bytes.size(), 4u * static_cast<std::size_t>(dimensions));
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      float x = 0;
      std::memcpy(&x, bytes.data() + 4 * k, 4);
      EXPECT_EQ(x, numbers[k].get<float>());
    }
  }
}

TEST_F(serve_embeddings, are_listed_and_refused) {
  const http_reply list = own_->answer({"GET", "/v1/models", {}, "", "test", {}});
  const json listed = json::parse(list.body);
  std::vector<std::string> names;
  for (const json& m : listed["data"]) names.push_back(m["id"]);
  EXPECT_THAT(names, testing::UnorderedElementsAre("words", "scripture"));
  const http_reply own = own_->answer({"GET", "/v1/models/words", {}, "", "test", {}});
  EXPECT_EQ(json::parse(own.body)["max_model_len"], 12);
  const json good = {{"model", "words"}, {"input", "a"}};
  const auto with = [&](const char* field, const json& v) {
    json b = good;
    b[field] = v;
    return b;
  };
  refused(with("model", "none"), 404, "there is no model none", "model", "model_not_found");
  refused(with("model", "scripture"), 400, "does not say how it embeds", "model", "model_not_supported");
  refused(with("input", ""), 400, "an empty one at place 0", "input");
  refused(with("input", json::array({"a", ""})), 400, "an empty one at place 1", "input");
  refused(with("input", json::array()), 400, "a list of either", "input");
  refused(with("input", 3), 400, "a list of either", "input");
  refused(with("input", json::array({1, 2048})), 400, "token 2048", "input");
  refused(with("input", json::array({-1})), 400, "a list of either", "input");
  refused(with("input", std::vector<int>(13, 1)), 400, "at most 12 tokens: found 13", "input",
          "context_length_exceeded");
  refused(with("input", std::vector<std::string>(2049, "a")), 400, "at most 2048 texts", "input");
  refused(with("dimensions", 7), 400, "expected 1 to 6, found 7", "dimensions");
  refused(with("dimensions", 0), 400, "dimensions", "dimensions");
  refused(with("encoding_format", "hex"), 400, "float or base64", "encoding_format");
  refused(with("other", 1), 400, "other", "other", "unknown_parameter");
  refused({{"input", "a"}}, 400, "model", "model");
  const http_reply chat =
      own_->answer({"POST", "/v1/completions", {}, json{{"model", "words"}, {"prompt", "a"}}.dump(), "test", {}});
  EXPECT_EQ(chat.status, 404) << chat.body;
  EXPECT_EQ(ok(good)["data"].size(), 1u);
}

TEST_F(serve_embeddings, are_counted_while_they_run) {
  const json body = {{"model", "words"}, {"input", {"a", "b"}}};
  const auto metrics = [&] { return own_->answer({"GET", "/metrics", {}, "", "test", {}}).body; };
  const std::string gauge = "kiln_sequences{model=\"words\",state=\"running\"} ";
  EXPECT_THAT(metrics(), HasSubstr(gauge + "0"));
  std::string during;
  const http_reply r = ask(body, [&] { return during = metrics(), false; });
  EXPECT_EQ(r.status, 200) << r.body;
  EXPECT_THAT(during, HasSubstr(gauge + "1"));
  EXPECT_THAT(metrics(), HasSubstr(gauge + "0"));
}

TEST_F(serve_embeddings, end_between_texts_when_the_server_stops) {
  const json body = {{"model", "words"}, {"input", {"a", "b", "c"}}};
  int asked = 0;
  const http_reply r = ask(body, [&] {
    if (++asked == 2) own_->stop();
    return false;
  });
  EXPECT_EQ(r.status, 503) << r.body;
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(json::parse(r.body)["error"]["code"], "shutting_down");
  refused(body, 503, "shutting down", nullptr, "shutting_down");
}

}  // namespace
}  // namespace kiln::serve
