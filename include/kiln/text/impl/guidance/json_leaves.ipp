#include "kiln/text/impl/guidance/json_leaves.hpp"

#include <array>
#include <cmath>
#include <optional>

#include "kiln/text/impl/guidance/json_numbers.hpp"

namespace kiln::language::guidance {

namespace {

using json = nlohmann::ordered_json;
using node = automaton::node;
constexpr std::uint32_t most_elements = 10'000;

// Texts of a format that any reader of it takes; not all of them: February has 28 days, for one.
std::optional<std::string> pattern_of_format(const std::string& name) {
  const std::string date =
      "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])"
      ")";
  const std::string time =
      "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
  const std::string label = "[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?";
  const std::string host = label + "(\\." + label + "){0,4}";
  const std::string byte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])", hex = "[0-9a-fA-F]";
  const std::string path = "[A-Za-z0-9._~-]*";
  const std::array<std::pair<std::string, std::string>, 10> known{
      {{"date", date},
       {"time", time},
       {"date-time", date + "T" + time},
       {"duration", "P([0-9]{1,5}[WD]|([0-9]{1,5}D)?T[0-9]{1,5}[HMS])"},
       {"email", "[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,3}@" + label + "(\\." + label + "){1,4}"},
       {"hostname", host},
       {"ipv4", byte + "(\\." + byte + "){3}"},
       {"ipv6", "(" + hex + "{1,4}:){7}" + hex + "{1,4}"},
       {"uuid", hex + "{8}(-" + hex + "{4}){3}-" + hex + "{12}"},
       {"uri", "https?://" + host + "(:[1-9][0-9]{0,3})?(/" + path + "){0,8}(\\?" + path + ")?(#" + path + ")?"}}};
  for (const auto& [format, pattern] : known)
    if (format == name) return pattern;
  return std::nullopt;
}

std::optional<number_bounds::bound> tighter(const std::optional<number_bounds::bound>& a, number_bounds::bound b,
                                            bool is_least) {
  if (!a) return b;
  if (a->at == b.at) return number_bounds::bound{b.at, a->is_in && b.is_in};
  return (a->at < b.at) == is_least ? b : *a;
}

// A bound that is not whole is one of integers only.
number_bounds::bound bound_of(const json& schema, const char* key, const std::string& path, bool is_whole) {
  const json& value = schema[key];
  const std::string place = "\"" + std::string(key) + "\": ";
  if (!value.is_number()) schema_fault(errc::malformed, path, place + "expected a number, found " + value.dump());
  const double v = value.get<double>();
  if (std::abs(v) > 1e15) schema_fault(errc::unsupported, path, place + "expected at most 1e15, found " + value.dump());
  const std::string_view name(key);
  const bool is_least = name.ends_with("inimum"), excludes = name.starts_with("exclusive");
  if (v == std::floor(v)) return {static_cast<std::int64_t>(v), !excludes};
  if (!is_whole)
    schema_fault(errc::unsupported, path, place + "expected a whole number for a \"number\", found " + value.dump());
  return {static_cast<std::int64_t>(is_least ? std::ceil(v) : std::floor(v)), true};
}

}  // namespace

void schema_fault(errc code, const std::string& path, const std::string& why) {
  raise(code, "JSON schema: " + path + ": " + why);
}

std::uint32_t schema_count(const json& schema, const char* key, std::uint32_t otherwise, const std::string& path) {
  if (!schema.contains(key)) return otherwise;
  const json& value = schema[key];
  const double n = value.is_number() ? value.get<double>() : -1;
  if (n < 0 || n > most_elements || n != static_cast<std::uint32_t>(n))
    schema_fault(errc::malformed, path,
                 "\"" + std::string(key) + "\": expected an integer from 0 to " + std::to_string(most_elements) +
                     ", found " + value.dump());
  return static_cast<std::uint32_t>(n);
}

node add_schema_string(automaton& a, json_texts& texts, node from, const json& schema, const std::string& path) {
  const std::uint32_t least = schema_count(schema, "minLength", 0, path),
                      most = schema_count(schema, "maxLength", unbounded, path);
  const bool has_pattern = schema.contains("pattern"), has_format = schema.contains("format");
  if (!has_pattern && !has_format) return least > most ? a.add_place() : texts.string(from, least, most);
  const std::string key = has_pattern ? "pattern" : "format";
  if (least != 0 || most != unbounded)
    schema_fault(errc::unsupported, path, "\"" + key + "\" is not supported beside \"minLength\" or \"maxLength\"");
  if (has_pattern && has_format)
    schema_fault(errc::unsupported, path, "\"pattern\" is not supported beside \"format\"");
  if (!schema[key].is_string())
    schema_fault(errc::malformed, path, "\"" + key + "\": expected a string, found " + schema[key].dump());
  const auto& text = schema[key].get_ref<const std::string&>();
  if (has_format) {
    const auto pattern = pattern_of_format(text);
    if (!pattern) schema_fault(errc::unsupported, path, "\"format\": " + schema[key].dump() + " is not supported");
    return texts.string(from, parse_expression(*pattern, extent::whole));
  }
  try {
    return texts.string(from, parse_expression(text, extent::part));
  } catch (const error& e) {
    schema_fault(e.code(), path, "\"pattern\": " + e.message());
  }
}

node add_schema_number(automaton& a, json_texts& texts, node from, const json& schema, const std::string& path,
                       bool is_whole) {
  number_bounds b;
  b.is_whole = is_whole;
  for (const char* key : {"minimum", "exclusiveMinimum"})
    if (schema.contains(key)) b.least = tighter(b.least, bound_of(schema, key, path, is_whole), true);
  for (const char* key : {"maximum", "exclusiveMaximum"})
    if (schema.contains(key)) b.most = tighter(b.most, bound_of(schema, key, path, is_whole), false);
  if (schema.contains("multipleOf")) {
    const json& of = schema["multipleOf"];
    const double m = of.is_number() ? of.get<double>() : 0;
    if (m <= 0) schema_fault(errc::malformed, path, "\"multipleOf\": expected a number above 0, found " + of.dump());
    if (m != std::floor(m) || m > number_bounds::most_multiple)
      schema_fault(errc::unsupported, path, "\"multipleOf\": expected an integer from 1 to 1000, found " + of.dump());
    if (b.least || b.most)
      schema_fault(errc::unsupported, path, "\"multipleOf\" is not supported beside bounds of the number");
    b.multiple = static_cast<std::int64_t>(m), b.is_whole = true;
    return m == 1 ? texts.integer(from) : add_numbers(a, from, b);
  }
  if (b.least || b.most) return add_numbers(a, from, b);
  return is_whole ? texts.integer(from) : texts.number(from);
}

}  // namespace kiln::language::guidance
