#include <gtest/gtest.h>

#include <kiln/core/error.hpp>
#include <kiln/text/chat_template.hpp>
#include <kiln/text/tokenizer.hpp>

namespace {

using kiln::language::chat_template;
using request = chat_template::request;

constexpr const char* greeting = R"([{"role": "user", "content": "Hi"}])";

std::string message_of(const auto& f) {
  try {
    f();
  } catch (const kiln::error& e) {
    return e.what();
  }
  return "no error";
}

TEST(chat_template, has_special_tokens_and_variables) {
  const auto t =
      chat_template::from("{{ bos_token }}{{ messages[0].content }}{{ x }}{{ eos_token is defined }}{{ tools }}",
                          R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": null})");
  EXPECT_EQ(t.render({.messages_json = greeting, .variables_json = R"({"x": 1.0})"}), "<s>Hi1.0FalseNone");
  EXPECT_EQ(t.render({.messages_json = greeting, .tools_json = "[]", .variables_json = R"({"bos_token": "B"})"}),
            "BHiFalse[]");
}

TEST(chat_template, comes_with_a_tokenizer) {
  using kiln::language::tokenizer;
  const auto load = [](const char* templates) {
    return tokenizer::load(
        tokenizer::files{{"vocab.txt", "[UNK]\n<s>\n"},
                         {"tokenizer_config.json", R"({"bos_token": "<s>")" + std::string(templates) + "}"}});
  };
  const tokenizer t = load(R"(, "chat_template": [{"name": "default", "template": "{{ bos_token }}a"},
                                                  {"name": "tool_use", "template": "{{ bos_token }}b"}])");
  EXPECT_EQ(chat_template::of(t).render({.messages_json = greeting}), "<s>a");
  EXPECT_EQ(chat_template::of(t).render({.messages_json = greeting, .tools_json = R"([{"name": "f"}])"}), "<s>b");
  EXPECT_EQ(chat_template::of(t, "{{ bos_token }}c").render({.messages_json = greeting}), "<s>c");
  EXPECT_TRUE(chat_template::of(load("")).empty());
}

TEST(chat_template, says_whether_the_assistant_begins) {
  const auto t = chat_template::from("{{ add_generation_prompt }}");
  EXPECT_EQ(t.render({.messages_json = "[]"}), "True");
  EXPECT_EQ(t.render({.messages_json = "[]", .add_generation_prompt = false}), "False");
}

TEST(chat_template, chooses_by_tools_and_by_name) {
  const auto t = chat_template::from(
      R"([{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}, {"name": "rag", "template": "r"}])");
  EXPECT_EQ(t.render({.messages_json = "[]"}), "d");
  EXPECT_EQ(t.render({.messages_json = "[]", .tools_json = "[{}]"}), "t");
  EXPECT_EQ(t.render({.messages_json = "[]", .tools_json = "[{}]", .name = "rag"}), "r");
  EXPECT_NE(message_of([&] { t.render({.messages_json = "[]", .name = "x"}); }).find("found default, rag, tool_use"),
            std::string::npos);
}

TEST(chat_template, must_exist) {
  const std::string message = message_of([] { chat_template().render({.messages_json = "[]"}); });
  EXPECT_NE(message.find("there is no chat template"), std::string::npos) << message;
}

TEST(chat_template, passes_on_what_the_template_raises) {
  const auto t = chat_template::from("a\n{% if messages %}{{ raise_exception('only one: ' ~ 1) }}{% endif %}");
  const std::string message = message_of([&] { t.render({.messages_json = greeting}); });
  EXPECT_NE(message.find("only one: 1"), std::string::npos) << message;
  EXPECT_NE(message.find("line 2, column"), std::string::npos) << message;
}

TEST(chat_template, names_line_column_expected_and_found) {
  const std::string message = message_of([] { chat_template::from("one\n  {{ messages[ }}"); });
  EXPECT_NE(message.find("line 2, column 16"), std::string::npos) << message;
  EXPECT_NE(message.find("expected ']'"), std::string::npos) << message;
  EXPECT_NE(message.find("found '}'"), std::string::npos) << message;
}

TEST(chat_template, refuses_json_of_another_kind) {
  const auto t = chat_template::from("x");
  EXPECT_NE(message_of([&] { t.render({.messages_json = "{}"}); }).find("messages: expected a list, found object"),
            std::string::npos);
  EXPECT_NE(message_of([&] { t.render({.messages_json = "[", .tools_json = "[]"}); }).find("messages: expected JSON"),
            std::string::npos);
  EXPECT_NE(message_of([] { chat_template::from(R"([{"name": "default"}])"); }).find("'template'"), std::string::npos);
}

TEST(chat_template, keeps_within_the_callers_limits) {
  const auto t = chat_template::from("{% for i in range(1000) %}{{ i }}{% endfor %}");
  kiln::language::jinja::limits few;
  few.steps = 500;
  EXPECT_NE(message_of([&] { t.render({.messages_json = "[]"}, few); }).find("at most 500 steps"), std::string::npos);
  few = {.output_bytes = 100};
  EXPECT_NE(message_of([&] { t.render({.messages_json = "[]"}, few); }).find("at most 100 bytes"), std::string::npos);
}

}  // namespace
