#pragma once
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "kiln/generate/generator.hpp"
#include "kiln/interface/language_session.hpp"
#include "kiln/interface/serve/service.hpp"
#include "kiln/text/token_stream.hpp"
#include "support/temporary_folder.hpp"

namespace kiln::serve {
namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

inline const fs::path scripture = KILN_SOURCE_DIR "/examples/models/scripture";

/// A service over the trained model of the examples, without a socket, and a copy of it with a chat template.
class serve_service : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_.emplace();
    folder_->write("chatty/chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
    for (const char* name : {"genai_config.json", "model.onnx", "tokenizer.json"})
      fs::copy_file(scripture / name, *folder_ / "chatty" / name);
    service_options o;
    o.models.models = {scripture.string(), (*folder_ / "chatty").string()};
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
    folder_.reset();
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
  static inline std::optional<test::temporary_folder> folder_;
  static inline std::mutex mutex_;
  static inline std::vector<json> lines_;
};

}  // namespace kiln::serve
