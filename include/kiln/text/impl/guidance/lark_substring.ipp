#include <nlohmann/json.hpp>
#include <string>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/guidance/lark.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::guidance {

namespace {

// The ends of the pieces of a text: its characters, or its words and what is between them.
std::vector<std::string> pieces(const std::string& text, bool words) {
  const auto is_in = [](const code_ranges& all, std::uint32_t c) { return !intersection(all, {{c, c}}).empty(); };
  std::vector<std::string> out;
  int last = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    const auto c = static_cast<std::uint32_t>(detail::next_character(text, at));
    const int kind = !words ? 0 : is_in(word_characters(), c) ? 1 : is_in(white_space(), c) ? 2 : 0;
    if (kind == 0 || kind != last) out.emplace_back();
    out.back() += text.substr(from, at - from);
    last = kind;
  }
  return out;
}

}  // namespace

expression lark_text(std::string_view text, bool any_case, std::size_t line) {
  expression e;
  for (std::size_t at = 0; at < text.size();) {
    const std::int32_t c = detail::next_character(text, at);
    if (c < 0) lark_fault(errc::malformed, line, "expected UTF-8 in a string");
    expression one;
    one.what = expression::kind::characters;
    const auto code = static_cast<std::uint32_t>(c);
    one.characters = {{code, code}};
    if (any_case) one.characters = in_any_case(one.characters);
    e.parts.push_back(std::move(one));
  }
  return e;
}

expression lark_substring(std::string_view text, std::size_t line) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto refuse = [&] {
    lark_fault(errc::unsupported, line,
               "%regex: expected one of substring_chars, substring_words (a text) and substring_chunks (a list of "
               "texts), found " +
                   std::string(text));
  };
  if (!json.is_object() || json.size() != 1) refuse();
  const std::string key = json.begin().key();
  const nlohmann::json& value = *json.begin();
  std::vector<std::string> parts;
  if (key == "substring_chunks" && value.is_array()) {
    for (const auto& part : value) part.is_string() ? parts.push_back(part.get<std::string>()) : refuse();
  } else if ((key == "substring_chars" || key == "substring_words") && value.is_string()) {
    parts = pieces(value.get<std::string>(), key == "substring_words");
  } else {
    refuse();
  }
  expression e;
  e.what = expression::kind::run;
  for (const std::string& part : parts) e.parts.push_back(lark_text(part, false, line));
  return e;
}

}  // namespace kiln::language::guidance
