#include <algorithm>
#include <cstdio>

#include "kiln/text/impl/jinja/interpreter.hpp"
#include "kiln/text/impl/jinja/operators.hpp"
#include "kiln/text/impl/jinja/text_tools.hpp"
#include "kiln/text/impl/jinja/unicode.hpp"

namespace kiln::language::jinja {
namespace {

using in_t = interpreter;

template <std::string (*map)(std::string_view)> value mapped(in_t& in, const value& v, const bound&) {
  return in.text(map(to_text(v)));
}

// Words begin after white space, hyphens and opening brackets.
std::string title_words(std::string_view text) {
  std::string out;
  bool begins = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::uint32_t p = next_point(text, at);
    const std::string_view one = text.substr(begin, at - begin);
    const bool is_between = is_space(p) || p == '-' || p == '(' || p == '{' || p == '[' || p == '<';
    out += is_between ? std::string(one) : begins ? upper(one) : lower(one);
    begins = is_between;
  }
  return out;
}

value trim(in_t& in, const value& v, const bound& a) {
  const std::string text = to_text(v);
  const bool by_default = !a.has(0) || a[0].is(kind::none);
  return in.text(std::string(by_default ? strip(text, true, true) : strip(text, a.text(0), true, true)));
}

value replace(in_t& in, const value& v, const bound& a) {
  return in.text(replaced(to_text(v), to_text(a[0]), to_text(a[1]), a.integer(2, -1)));
}

value indent(in_t& in, const value& v, const bound& a) {
  if (!v.is(kind::string)) fail("indent: expected a string, found '" + std::string(type_name(v)) + "'");
  std::string by;
  if (a.has(0) && a[0].is(kind::string))
    by = a.text(0);
  else
    by.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(a.integer(0, 4), 0, 10000)), ' ');
  const std::vector<std::string> lines = lines_of(v.bytes() + "\n", false);
  std::string out = a.flag(1) ? by : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (a.flag(2) || !lines[i].empty())) out += by;
    out += lines[i];
    check_size(out.size());
  }
  return in.text(std::move(out));
}

value count_words(in_t&, const value& v, const bound&) {
  const std::string text = to_text(v);
  std::int64_t n = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t p = next_point(text, at);
    const bool is_letter = is_alphabetic(p) || is_numeric(p) || p == '_';
    if (is_letter && !in_word) ++n;
    in_word = is_letter;
  }
  return n;
}

value center(in_t& in, const value& v, const bound& a) {
  const value text = v.is(kind::string) ? v : in.text(to_text(v));
  arguments width;
  width.positional.push_back(a.get(0, value(std::int64_t{80})));
  const native& method = *find_method(text, "center");
  return method.call(in, text, bound("center", method.parameters, width));
}

value escape(in_t& in, const value& v, const bound&) { return in.text(escape_html(to_text(v))); }
value string(in_t& in, const value& v, const bound&) { return v.is(kind::string) ? v : in.text(to_text(v)); }

value strip_tags(in_t& in, const value& v, const bound&) {
  std::string text = to_text(v), out;
  for (std::size_t begin; (begin = text.find("<!--")) != text.npos;) {
    const std::size_t end = text.find("-->", begin);
    if (end == text.npos) break;
    text.erase(begin, end + 3 - begin);
  }
  for (std::size_t begin; (begin = text.find('<')) != text.npos;) {
    const std::size_t end = text.find('>', begin);
    if (end == text.npos) break;
    text.erase(begin, end + 1 - begin);
  }
  for (std::string_view rest = strip(text, true, true); !rest.empty();) {  // runs of white space become one blank
    std::size_t end = 0;
    for (std::size_t at = 0; end < rest.size() && !is_space(next_point(rest, at)); end = at) {
    }
    out += rest.substr(0, end);
    rest = strip(rest.substr(end), true, false);
    if (!rest.empty()) out += ' ';
  }
  constexpr std::pair<std::string_view, std::string_view> entities[] = {
      {"&lt;", "<"}, {"&gt;", ">"}, {"&#39;", "'"}, {"&#34;", "\""}, {"&quot;", "\""}, {"&amp;", "&"}};
  for (const auto& [name, meant] : entities) out = replaced(out, name, meant, -1);
  return in.text(std::move(out));
}

std::string quote_url(std::string_view text, bool is_query) {
  constexpr std::string_view safe = "_.-~/";
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || safe.find(c) != safe.npos;
    char room[4];
    if (is_query && c == ' ')
      out += '+';
    else if (is_plain && !(is_query && c == '/'))
      out += c;
    else
      out.append(room,
                 static_cast<std::size_t>(std::snprintf(room, sizeof room, "%%%02X", static_cast<unsigned char>(c))));
  }
  return out;
}

value encode_url(in_t& in, const value& v, const bound&) {
  if (!v.is(kind::dict) && !v.is(kind::list)) return in.text(quote_url(to_text(v), false));
  std::string out;
  const auto add = [&](const value& key, const value& item) {
    if (!out.empty()) out += '&';
    out += quote_url(to_text(key), true) + "=" + quote_url(to_text(item), true);
  };
  if (v.is(kind::dict)) {
    for (const auto& [key, item] : v.dict()->entries) add(key, item);
  } else {
    for (const value& pair : v.list()->items) {
      const std::vector<value> two = in.items_of(pair);
      if (two.size() != 2) fail("urlencode: expected pairs");
      add(two[0], two[1]);
    }
  }
  return in.text(std::move(out));
}

value format(in_t& in, const value& v, const bound& a) {
  const std::string text = to_text(v);
  if (a.all().named.empty()) return in.text(format_percent(in, text, in.values.tuple(a.all().positional)));
  dict_object* d = in.values.dict();
  for (const auto& [name, of] : a.all().named) d->set(in.text(std::string(name)), of);
  return in.text(format_percent(in, text, d));
}

value truncate(in_t& in, const value& v, const bound& a) {
  const value text = v.is(kind::string) ? v : in.text(to_text(v));
  const std::string end = a.has(2) ? a.text(2) : "...";
  const std::int64_t length = a.integer(0, 255), kept = length - static_cast<std::int64_t>(count_points(end));
  if (kept < 0 || a.integer(3, 5) < 0) fail("truncate: expected a length that holds the end mark, and leeway from 0");
  if (static_cast<std::int64_t>(text.str().points) <= length + a.integer(3, 5)) return text;
  std::string cut = slice(in, text, value::none(), value(kept), value::none()).bytes();
  if (!a.flag(1)) cut = cut.substr(0, cut.rfind(' '));
  return in.text(cut + end);
}

constexpr native rows[] = {
    {"upper", "", mapped<upper>},
    {"lower", "", mapped<lower>},
    {"capitalize", "", mapped<capitalize>},
    {"title", "", mapped<title_words>},
    {"trim", "chars?", trim},
    {"replace", "old new count?", replace},
    {"indent", "width? first? blank?", indent},
    {"wordcount", "", count_words},
    {"center", "width?", center},
    {"escape", "", escape},
    {"e", "", escape},
    {"forceescape", "", escape},
    {"safe", "", string},
    {"string", "", string},
    {"striptags", "", strip_tags},
    {"urlencode", "", encode_url},
    {"format", "*", format},
    {"truncate", "length? killwords? end? leeway?", truncate},
};

}  // namespace

std::span<const native> text_filters() { return rows; }

}  // namespace kiln::language::jinja
