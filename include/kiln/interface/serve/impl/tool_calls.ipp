#include "kiln/interface/serve/tool_calls.hpp"

#include <algorithm>

#include "kiln/interface/serve/impl/json.hpp"

namespace kiln::serve {

namespace {

constexpr std::string_view open_element = "<tool_call>", close_element = "</tool_call>", open_list = "[TOOL_CALLS]";
constexpr std::string_view blanks = " \t\r\n";

std::string_view trimmed(std::string_view s) {
  const auto from = s.find_first_not_of(blanks);
  return from == s.npos ? std::string_view() : s.substr(from, s.find_last_not_of(blanks) - from + 1);
}

// Appends the calls of an object or a list of them; false where it is neither.
bool read_calls(std::string_view text, std::vector<tool_call>& to) {
  json all;
  try {
    all = parse_value(text);
  } catch (const api_error&) {
    return false;
  }
  if (all.is_object()) all = json::array({std::move(all)});
  if (!all.is_array() || all.empty()) return false;
  std::vector<tool_call> out;
  for (const json& one : all) {
    if (!one.is_object() || !one.contains("name") || !one["name"].is_string()) return false;
    const char* const key = one.contains("arguments") ? "arguments" : "parameters";
    if (!one.contains(key)) return false;
    const json& arguments = one[key];
    out.push_back({one["name"], arguments.is_string() ? arguments.get<std::string>() : text_of(arguments)});
  }
  to.insert(to.end(), out.begin(), out.end());
  return true;
}

// Of the last bytes of a text, those that begin `mark`.
std::size_t begun(std::string_view text, std::string_view mark) {
  for (std::size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n)
    if (mark.starts_with(text.substr(text.size() - n))) return n;
  return 0;
}

}  // namespace

tool_form tool_form_of(std::string_view chat_template) {
  if (chat_template.find(open_element) != chat_template.npos) return tool_form::element;
  if (chat_template.find(open_list) != chat_template.npos) return tool_form::list;
  return tool_form::object;
}

std::string tool_reader::put(std::string_view piece) {
  held_ += piece;
  if (is_inside_) return {};
  std::size_t certain = held_.size();
  if (form_ == tool_form::object) {
    // an object alone is a call: text before it makes it text
    const auto first = held_.find_first_not_of(blanks);
    if (!has_text_ && (first == held_.npos || held_[first] == '{')) {
      is_inside_ = first != held_.npos;
      return {};
    }
    has_text_ = true;
  } else {
    const std::string_view mark = form_ == tool_form::element ? open_element : open_list;
    if (const auto at = held_.find(mark); at != held_.npos)
      is_inside_ = true, certain = at;
    else
      certain -= begun(held_, mark);
  }
  std::string out = held_.substr(0, certain);
  held_.erase(0, certain);
  return out;
}

std::vector<tool_call> tool_reader::finish(std::string& rest) {
  std::vector<tool_call> out;
  const std::string all = std::exchange(held_, {});
  std::string_view left = all;
  const bool is_call = std::exchange(is_inside_, false);
  has_text_ = false;
  rest = all;
  if (!is_call) return out;
  if (form_ == tool_form::element) {
    while (left.starts_with(open_element)) {
      left.remove_prefix(open_element.size());
      const auto end = left.find(close_element);
      if (!read_calls(trimmed(left.substr(0, end)), out)) return {};
      left = end == left.npos ? std::string_view() : trimmed(left.substr(end + close_element.size()));
    }
  } else {
    if (form_ == tool_form::list) left.remove_prefix(open_list.size());
    if (!read_calls(trimmed(left), out)) return {};
    left = {};
  }
  rest = left;
  return out;
}

}  // namespace kiln::serve
