#include "kiln/text/impl/jinja/text_tools.hpp"

#include "kiln/text/impl/jinja/unicode.hpp"
#include "kiln/text/impl/jinja/value.hpp"

namespace kiln::language::jinja {
namespace {

bool ends_line(std::uint32_t p) {
  return (p >= 10 && p <= 13) || (p >= 0x1C && p <= 0x1E) || p == 0x85 || p == 0x2028 || p == 0x2029;
}

}  // namespace

std::string replaced(std::string_view text, std::string_view old, std::string_view by, std::int64_t count) {
  std::string out;
  if (old.empty()) {  // between all characters
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = after_point(text, at);
      if (count != 0) out += by, --count;
      check_size(out.size());
      out += text.substr(at, end - at);
      at = end;
    }
    return count != 0 ? out += by : out;
  }
  std::size_t begin = 0;
  for (std::size_t at = text.find(old); at != text.npos && count != 0; at = text.find(old, begin), --count) {
    (out += text.substr(begin, at - begin)) += by;
    begin = at + old.size();
    check_size(out.size());
  }
  return out += text.substr(begin);
}

std::vector<std::string> lines_of(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    const std::uint32_t point = next_point(text, at);
    if (!ends_line(point)) continue;
    if (point == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.emplace_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out += c;
    }
  return out;
}

}  // namespace kiln::language::jinja
