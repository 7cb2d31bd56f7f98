#include "kiln/text/impl/guidance/json_kinds.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kiln/text/impl/guidance/json_leaves.hpp"

namespace kiln::language::guidance {

namespace {

using json = nlohmann::ordered_json;
constexpr int most_depth = 300;
const kinds all_kinds = {"object", "array", "string", "number", "integer", "boolean", "null"};

}  // namespace

kinds kinds_of_schema(const json& schema, const std::string& path) {
  if (!schema.contains("type")) return all_kinds;
  const json& type = schema["type"];
  kinds out;
  for (const json& one : type.is_array() ? type : json::array({type})) {
    if (!one.is_string() || !all_kinds.contains(one.get<std::string>()))
      schema_fault(errc::malformed, path, "expected a \"type\" of JSON, found " + one.dump());
    out.insert(one.get<std::string>());
  }
  if (out.contains("number")) out.insert("integer");
  return out;
}

kinds kinds_of_value(const json& v) {
  if (v.is_object()) return {"object"};
  if (v.is_array()) return {"array"};
  if (v.is_string()) return {"string"};
  if (v.is_boolean()) return {"boolean"};
  if (v.is_null()) return {"null"};
  // 1.0 is an integer (JSON Schema 2020-12, core, section 4.2.3).
  const double n = v.get<double>();
  return n == std::floor(n) ? kinds{"integer", "number"} : kinds{"number"};
}

bool are_apart(const json& a, const json& b, const merge_context& c, const std::string& path, int depth) {
  if (depth > most_depth) return false;
  if (a.is_boolean() || b.is_boolean()) return a == false || b == false;
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (one->contains("allOf"))
      return std::any_of((*one)["allOf"].begin(), (*one)["allOf"].end(),
                         [&](const json& part) { return are_apart(part, *other, c, path, depth + 1); });
    if (one->contains("$ref")) return are_apart(c.target(*one), *other, c, path, depth + 1);
    for (const char* key : {"anyOf", "oneOf"})
      if (one->contains(key))
        return std::all_of((*one)[key].begin(), (*one)[key].end(),
                           [&](const json& part) { return are_apart(part, *other, c, path, depth + 1); });
  }
  const auto constants = [](const json& s) {
    return s.contains("const") ? json::array({s["const"]}) : s.value("enum", json());
  };
  const json of_a = constants(a), of_b = constants(b);
  if (!of_a.is_null() && !of_b.is_null())
    return std::none_of(of_a.begin(), of_a.end(),
                        [&](const json& v) { return std::find(of_b.begin(), of_b.end(), v) != of_b.end(); });
  const auto kinds_of = [&](const json& s, const json& fixed) {
    if (fixed.is_null()) return kinds_of_schema(s, path);
    kinds out;
    for (const json& v : fixed) out.merge(kinds_of_value(v));
    return out;
  };
  const kinds left = kinds_of(a, of_a), right = kinds_of(b, of_b);
  kinds both;
  std::set_intersection(left.begin(), left.end(), right.begin(), right.end(), std::inserter(both, both.end()));
  if (both.empty()) return true;
  if (both != kinds{"object"}) return false;
  const auto requires_name = [](const json& s, const std::string& name) {
    const json required = s.value("required", json::array());
    return std::find(required.begin(), required.end(), json(name)) != required.end();
  };
  if (!a.contains("properties") || !b.contains("properties")) return false;
  for (const auto& [name, of_name] : a["properties"].items())
    if (requires_name(a, name) && requires_name(b, name) && b["properties"].contains(name) &&
        are_apart(of_name, b["properties"][name], c, path, depth + 1))
      return true;
  return false;
}

}  // namespace kiln::language::guidance
