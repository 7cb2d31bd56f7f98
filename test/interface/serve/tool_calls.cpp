#include "kiln/interface/serve/tool_calls.hpp"

#include <gmock/gmock.h>

namespace kiln::serve {
namespace {

struct outcome {
  std::string text, rest;
  std::vector<tool_call> calls;
};
// An answer that comes in pieces of so many bytes.
outcome read(tool_form form, const std::string& all, std::size_t piece) {
  outcome o;
  tool_reader r(form);
  for (std::size_t k = 0; k < all.size(); k += piece) o.text += r.put(std::string_view(all).substr(k, piece));
  o.calls = r.finish(o.rest);
  return o;
}

void expect_calls(tool_form form, const std::string& all, const std::string& text,
                  const std::vector<tool_call>& calls) {
  for (const std::size_t piece : {std::size_t(1), std::size_t(3), all.size()}) {
    const outcome o = read(form, all, piece);
    EXPECT_EQ(o.text + o.rest, text) << all << " by " << piece;
    ASSERT_EQ(o.calls.size(), calls.size()) << all;
    for (std::size_t k = 0; k < calls.size(); ++k) {
      EXPECT_EQ(o.calls[k].name, calls[k].name);
      EXPECT_EQ(o.calls[k].arguments, calls[k].arguments);
    }
  }
}

TEST(tool_calls, are_told_from_text_in_each_form) {
  const std::string f = R"({"name": "f", "arguments": {"x": 1}})", g = R"({"name": "g", "parameters": {}})";
  expect_calls(tool_form::element, "So:\n<tool_call>\n" + f + "\n</tool_call>\n<tool_call>" + g + "</tool_call>",
               "So:\n", {{"f", R"({"x":1})"}, {"g", "{}"}});
  expect_calls(tool_form::element, "a < b <tool", "a < b <tool", {});
  expect_calls(tool_form::element, "<tool_call>" + f, "", {{"f", R"({"x":1})"}});
  expect_calls(tool_form::list, "[TOOL_CALLS][" + f + ", " + g + "]", "", {{"f", R"({"x":1})"}, {"g", "{}"}});
  expect_calls(tool_form::object, " " + g, "", {{"g", "{}"}});
  expect_calls(tool_form::object, "It is " + f, "It is " + f, {});
}

TEST(tool_calls, what_is_none_stays_text) {
  for (const char* bad : {"{\"name\": 1, \"arguments\": {}}", "{\"name\": \"f\"}", "{", "{}", "{\"a\": [1]} and more"})
    expect_calls(tool_form::object, bad, bad, {});
  const std::string deep = R"({"name": "f", "arguments": )" + std::string(5000, '[') + std::string(5000, ']') + "}";
  expect_calls(tool_form::object, deep, deep, {});
  expect_calls(tool_form::element, "<tool_call>no</tool_call>", "<tool_call>no</tool_call>", {});
}

TEST(tool_calls, a_template_tells_the_form) {
  EXPECT_EQ(tool_form_of("… <tool_call> …"), tool_form::element);
  EXPECT_EQ(tool_form_of("… [TOOL_CALLS] …"), tool_form::list);
  EXPECT_EQ(tool_form_of("{{ x }}"), tool_form::object);
}

}  // namespace
}  // namespace kiln::serve
