#include <algorithm>

#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/text_tools.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

using in_t = interpreter;
using pieces = std::vector<std::string>;

value list_of(in_t& in, const pieces& all) {
  std::vector<value> items;
  items.reserve(all.size());
  for (const std::string& s : all) items.push_back(in.text(s));
  return in.values.list(std::move(items));
}

pieces split_at_spaces(std::string_view text, std::int64_t most) {
  pieces out;
  text = strip(text, true, false);
  while (!text.empty()) {
    if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) {
      out.emplace_back(text);
      break;
    }
    std::size_t end = 0;
    while (end < text.size()) {
      std::size_t at = end;
      if (is_space(next_point(text, at))) break;
      end = at;
    }
    out.emplace_back(text.substr(0, end));
    text = strip(text.substr(end), true, false);
  }
  return out;
}

pieces split_at_spaces_from_right(std::string_view text, std::int64_t most) {
  pieces words = split_at_spaces(text, -1);
  if (most < 0 || static_cast<std::int64_t>(words.size()) <= most) return words;
  // what stands before the last words stays one piece
  const auto kept = static_cast<std::size_t>(most);
  std::string_view rest = strip(text, false, true);
  for (std::size_t i = 0; i < kept; ++i) {
    rest.remove_suffix(words[words.size() - 1 - i].size());
    rest = strip(rest, false, true);
  }
  pieces out;
  if (!rest.empty()) out.emplace_back(rest);
  out.insert(out.end(), words.end() - static_cast<std::ptrdiff_t>(kept), words.end());
  return out;
}

value split(in_t& in, const value& self, const bound& a) {
  std::int64_t most = a.integer(1, -1);
  const std::string& text = self.bytes();
  if (!a.has(0) || a[0].is(kind::none)) return list_of(in, split_at_spaces(text, most));
  const std::string& by = a.text(0);
  if (by.empty()) fail("empty separator");
  pieces out;
  std::size_t begin = 0;
  for (std::size_t at = text.find(by); at != text.npos && most != 0; at = text.find(by, begin), --most) {
    out.push_back(text.substr(begin, at - begin));
    begin = at + by.size();
  }
  out.push_back(text.substr(begin));
  return list_of(in, out);
}

value rsplit(in_t& in, const value& self, const bound& a) {
  std::int64_t most = a.integer(1, -1);
  std::string_view text = self.bytes();
  if (!a.has(0) || a[0].is(kind::none)) return list_of(in, split_at_spaces_from_right(text, most));
  const std::string& by = a.text(0);
  if (by.empty()) fail("empty separator");
  pieces out;
  for (std::size_t at = text.rfind(by); at != text.npos && most != 0; at = text.rfind(by), --most) {
    out.emplace_back(text.substr(at + by.size()));
    text = text.substr(0, at);
  }
  out.emplace_back(text);
  std::reverse(out.begin(), out.end());
  return list_of(in, out);
}

value splitlines(in_t& in, const value& self, const bound& a) { return list_of(in, lines_of(self.bytes(), a.flag(0))); }

template <bool from_right> value partition(in_t& in, const value& self, const bound& a) {
  const std::string &text = self.bytes(), &by = a.text(0);
  if (by.empty()) fail("empty separator");
  const std::size_t at = from_right ? text.rfind(by) : text.find(by);
  const value none = in.text({});
  if (at == text.npos)
    return in.values.tuple(from_right ? std::vector{none, none, self} : std::vector{self, none, none});
  return in.values.tuple({in.text(text.substr(0, at)), a[0], in.text(text.substr(at + by.size()))});
}

constexpr native rows[] = {
    {"split", "sep? maxsplit?", split},      {"rsplit", "sep? maxsplit?", rsplit},
    {"splitlines", "keepends?", splitlines}, {"partition", "sep", partition<false>},
    {"rpartition", "sep", partition<true>},
};

}  // namespace

std::span<const native> split_methods() { return rows; }

}  // namespace kiln::language::jinja
