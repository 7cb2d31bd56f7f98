#include "kiln/text/impl/guidance/json_negate.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace kiln::language::guidance {

namespace {

using json = nlohmann::ordered_json;
using schemas = std::vector<json>;
constexpr int most_depth = 64;
constexpr std::size_t most_schemas = 256;

// A bound and what holds beyond it, of values of a kind.
struct bound {
  std::string_view key, kind, beyond;
  int step;  // of counts
};
constexpr std::array<bound, 10> bounds{{{"minimum", "number", "exclusiveMaximum", 0},
                                        {"maximum", "number", "exclusiveMinimum", 0},
                                        {"exclusiveMinimum", "number", "maximum", 0},
                                        {"exclusiveMaximum", "number", "minimum", 0},
                                        {"minLength", "string", "maxLength", -1},
                                        {"maxLength", "string", "minLength", 1},
                                        {"minItems", "array", "maxItems", -1},
                                        {"maxItems", "array", "minItems", 1},
                                        {"minProperties", "object", "maxProperties", -1},
                                        {"maxProperties", "object", "minProperties", 1}}};

void add(schemas& to, schemas more) { to.insert(to.end(), more.begin(), more.end()); }

schemas other_types(const json& type, const merge_context& c) {
  const json named = type.is_array() ? type : json::array({type});
  const auto has = [&](const char* name) { return std::find(named.begin(), named.end(), json(name)) != named.end(); };
  if (has("integer") && !has("number"))
    c.refuse("\"not\" of the type integer is not supported: it leaves numbers that are not whole");
  json rest = json::array();
  for (const char* kind : {"object", "array", "string", "number", "boolean", "null"})
    if (!has(kind)) rest.push_back(kind);
  return {json::object({{"type", rest}})};
}

schemas beyond(const bound& b, const json& value, const merge_context& c) {
  const std::string key(b.key);
  if (!value.is_number()) c.refuse("\"" + key + "\": expected a number, found " + value.dump());
  json out = json::object({{"type", std::string(b.kind)}});
  if (b.step == 0) {
    out[std::string(b.beyond)] = value;
    return {out};
  }
  constexpr double most = 1LL << 53;
  if (const auto v = value.get<double>(); !(v >= -most && v <= most))
    c.refuse("\"" + key + "\" in \"not\": expected a count up to 2^53, found " + value.dump());
  const auto n = value.get<std::int64_t>() + b.step;
  if (n < 0) return {};
  out[std::string(b.beyond)] = n;
  return {out};
}

// What breaks one keyword.
schemas broken(const json& schema, const std::string& key, const merge_context& c, int depth) {
  const json& value = schema[key];
  schemas out;
  for (const bound& b : bounds)
    if (b.key == key) return beyond(b, value, c);
  if (key == "type") return other_types(value, c);
  if (key == "const") return {json::object({{"not", json::object({{"enum", json::array({value})}})}})};
  if (key == "enum") return {json::object({{"not", json::object({{"enum", value}})}})};
  if (key == "not") return {value};
  if (key == "$ref") return negated(c.target(schema), c, depth + 1);
  if (key == "required") {
    for (const json& name : value)
      if (name.is_string())
        out.push_back({{"type", "object"}, {"properties", json::object({{name.get<std::string>(), false}})}});
    return out;
  }
  if (key == "properties" && value.is_object()) {
    for (const auto& [name, own] : value.items())
      for (const json& other : negated(own, c, depth + 1))
        out.push_back(
            {{"type", "object"}, {"required", json::array({name})}, {"properties", json::object({{name, other}})}});
    return out;
  }
  if (key == "allOf") {
    for (const json& part : value) add(out, negated(part, c, depth + 1));
    return out;
  }
  if (key == "anyOf") {
    out = {json(true)};
    for (const json& part : value) out = both_of(out, negated(part, c, depth + 1), c);
    return out;
  }
  c.refuse("\"not\" or \"if\" of a schema with \"" + key + "\" is not supported");
  return out;
}

}  // namespace

std::vector<json> negated(const json& schema, const merge_context& c, int depth) {
  if (depth > most_depth) c.refuse("\"not\" and \"if\" refer to each other too often");
  if (schema.is_boolean()) return schema.get<bool>() ? schemas() : schemas{json(true)};
  if (!schema.is_object()) c.refuse("expected a schema, found " + schema.dump());
  schemas out;
  for (const auto& [key, value] : schema.items())
    if (!is_annotation(key)) add(out, broken(schema, key, c, depth));
  return out;
}

bool bars_values(const json& schema) {
  const auto at = schema.find("not");
  return at != schema.end() && at->is_object() && at->size() == 1 && at->contains("enum") && (*at)["enum"].is_array();
}

std::vector<json> both_of(const std::vector<json>& a, const std::vector<json>& b, const merge_context& c) {
  if (a.size() * b.size() > most_schemas)
    c.refuse("\"not\" and \"if\" give more than " + std::to_string(most_schemas) + " schemas");
  schemas out;
  for (const json& one : a)
    for (const json& other : b)
      if (json both = merged(one, other, c); both != false) out.push_back(std::move(both));
  return out;
}

}  // namespace kiln::language::guidance
