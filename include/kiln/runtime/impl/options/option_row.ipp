#include "kiln/runtime/option_row.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kiln/core/edit_distance.hpp"
#include "kiln/core/error.hpp"
#include "kiln/core/inline_string.hpp"

namespace kiln {
namespace {

// The whole text as a number.
template <class T, class... Format> bool parse(std::string_view text, T& to, Format... format) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), to, format...);
  return fault == std::errc() && end == text.data() + text.size();
}

std::string joined(std::span<const std::string_view> words) {
  std::string out;
  for (std::string_view w : words) out.append(out.empty() ? "" : ", ").append(w);
  return out;
}

// Part of the other, a name is as near as one wrong letter makes it.
std::size_t farness(std::string_view name, std::string_view known) {
  const bool part = !name.empty() && (name.find(known) != name.npos || known.find(name) != known.npos);
  return part ? 1 : edit_distance(name, known);
}

}  // namespace

std::string_view to_string(option_kind kind) {
  return enumerator_name(kind, {"flag", "count", "number", "text", "path", "choice", "pairs", "names", "address"});
}

std::string option_info::expected() const {
  switch (kind) {
    case option_kind::flag: return "true or false";
    case option_kind::count: return "a whole number from 0 to " + std::to_string(most);
    case option_kind::number: return "a finite number";
    case option_kind::text: return "text";
    case option_kind::path: return "a path";
    case option_kind::choice: return "one of " + joined(choices);
    case option_kind::pairs: return "NAME=NAME,NAME=NAME with each first name once";
    case option_kind::names: return "NAME,NAME with each name once";
    case option_kind::address: return "an address, decimal or with 0x";
  }
  raise(errc::internal, "a kind of options without a description");
}

std::string to_option_text(std::span<const name_pair> pairs) {
  std::string out;
  const auto add = [&](std::string_view name) {
    for (const char c : name) {
      if (c == ',' || c == '=' || c == '\\') out += '\\';
      out += c;
    }
  };
  for (const auto& [first, second] : pairs) {
    if (!out.empty()) out += ',';
    add(first);
    out += '=';
    add(second);
  }
  return out;
}

std::string to_option_text(std::span<const std::string> names) {
  std::string out;
  for (const std::string& name : names) {
    if (!out.empty()) out += ',';
    for (const char c : name) {
      if (c == ',' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

namespace detail {

bool read_flag(std::string_view text, bool& to) {
  constexpr std::string_view yes[] = {"true", "True", "1", "on"}, no[] = {"false", "False", "0", "off"};
  const bool is_yes = std::find(std::begin(yes), std::end(yes), text) != std::end(yes);
  if (!is_yes && std::find(std::begin(no), std::end(no), text) == std::end(no)) return false;
  to = is_yes;
  return true;
}

bool read_count(std::string_view text, std::uint64_t most, std::uint64_t& to) { return parse(text, to) && to <= most; }

bool read_number(std::string_view text, double& to) {
  double value = 0;
  if (!parse(text, value) || !std::isfinite(value)) return false;
  to = value;
  return true;
}

bool read_choice(std::string_view text, std::span<const std::string_view> choices, std::size_t& to) {
  to = static_cast<std::size_t>(std::find(choices.begin(), choices.end(), text) - choices.begin());
  return to < choices.size();
}

bool read_pairs(std::string_view text, std::vector<name_pair>& to) {
  if (text.empty()) return true;
  name_pair pair;
  bool second = false;
  const auto end_pair = [&] {
    const bool known = std::any_of(to.begin(), to.end(), [&](const name_pair& p) { return p.first == pair.first; });
    const bool whole = !pair.first.empty() && !pair.second.empty() && !known;
    to.push_back(std::exchange(pair, {}));
    second = false;
    return whole;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',' && !end_pair()) return false;
    if (c == ',') continue;
    if (c == '=' && !second) {
      second = true;
      continue;
    }
    if (c == '\\' && ++i == text.size()) return false;
    (second ? pair.second : pair.first) += text[i];
  }
  return end_pair();
}

bool read_names(std::string_view text, std::vector<std::string>& to) {
  if (text.empty()) return true;
  std::string name;
  const auto end_name = [&] {
    const bool good = !name.empty() && std::find(to.begin(), to.end(), name) == to.end();
    to.push_back(std::exchange(name, {}));
    return good;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      if (!end_name()) return false;
      continue;
    }
    if (text[i] == '\\' && ++i == text.size()) return false;
    name += text[i];
  }
  return end_name();
}

bool read_address(std::string_view text, void*& to) {
  std::uintptr_t value = 0;
  if (!(text.starts_with("0x") ? parse(text.substr(2), value, 16) : parse(text, value))) return false;
  to = reinterpret_cast<void*>(value);
  return true;
}

std::string write_number(double value) {
  char digits[32];
  return {digits, std::to_chars(std::begin(digits), std::end(digits), value).ptr};
}

std::string write_address(const void* value) { return std::to_string(reinterpret_cast<std::uintptr_t>(value)); }

void refuse_value(const option_info& info, std::string_view text) {
  std::string rule = "option '", found = "'";
  rule.append(info.name).append("'");
  found.append(text).append("'");
  raise(fault::of(errc::invalid_argument, rule, info.expected(), found));
}

void refuse_name(std::span<const std::string_view> known, std::string_view name) {
  std::vector<std::string_view> near(known.begin(), known.end());
  std::stable_sort(near.begin(), near.end(),
                   [&](std::string_view a, std::string_view b) { return farness(name, a) < farness(name, b); });
  std::string message = "no option '";
  message.append(name).append("'");
  if (!near.empty()) message.append("; nearest '").append(near.front()).append("' of ").append(joined(known));
  raise(errc::not_found, std::move(message));
}

}  // namespace detail
}  // namespace kiln
