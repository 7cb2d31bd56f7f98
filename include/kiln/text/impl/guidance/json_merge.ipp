#include "kiln/text/impl/guidance/json_merge.hpp"

#include <algorithm>
#include <set>

#include "kiln/text/impl/guidance/json_negate.hpp"

namespace kiln::language::guidance {

namespace {

using json = nlohmann::ordered_json;
constexpr int most_depth = 64;

json both(const json& a, const json& b) {
  if (a == b || b == true) return a;
  if (a == true) return b;
  return json::object({{"allOf", json::array({a, b})}});
}

json types_of(const json& schema) {
  if (!schema.contains("type")) return json::array();
  return schema["type"].is_array() ? schema["type"] : json::array({schema["type"]});
}
json common_types(const json& a, const json& b) {
  json out = json::array();
  const auto has = [](const json& list, const char* name) {
    return std::find(list.begin(), list.end(), json(name)) != list.end();
  };
  for (const json& t : a) {
    if (std::find(b.begin(), b.end(), t) != b.end())
      out.push_back(t);
    else if (t == "integer" && has(b, "number"))
      out.push_back(t);
    else if (t == "number" && has(b, "integer"))
      out.push_back("integer");
  }
  return out;
}

class merger {
 public:
  merger(const json& a, const json& b, const merge_context& c) : a_(a), b_(b), c_(c) {}

  json run() {
    for (const json* schema : {&a_, &b_})
      for (const auto& [key, value] : schema->items())
        if (!out_.contains(key)) join(key);
    return std::move(out_);
  }

 private:
  void join(const std::string& key) {
    const bool in_a = a_.contains(key), in_b = b_.contains(key);
    if (key == "properties" || key == "additionalProperties") {
      objects();
    } else if ((key == "items" || key == "prefixItems") && (a_.contains("prefixItems") || b_.contains("prefixItems")) &&
               is_list(a_) && is_list(b_)) {
      refuse(key);
    } else if (!in_a || !in_b || a_[key] == b_[key]) {
      out_[key] = in_a ? a_[key] : b_[key];
    } else if (key == "type") {
      const json common = common_types(types_of(a_), types_of(b_));
      out_[key] = common;
    } else if (key == "required") {
      std::set<json> seen;
      json all = json::array();
      for (const json* s : {&a_, &b_})
        for (const json& name : (*s)[key])
          if (seen.insert(name).second) all.push_back(name);
      out_[key] = all;
    } else if (key == "items") {
      out_[key] = both(a_[key], b_[key]);
    } else if (key == "allOf") {
      out_[key] = a_[key];
      for (const json& part : b_[key]) out_[key].push_back(part);
    } else if (key.starts_with("min") || key == "exclusiveMinimum") {
      out_[key] = numbers(key).second;
    } else if (key.starts_with("max") || key == "exclusiveMaximum") {
      out_[key] = numbers(key).first;
    } else if (key == "enum") {
      json common = json::array();
      for (const json& v : a_[key])
        if (std::find(b_[key].begin(), b_[key].end(), v) != b_[key].end()) common.push_back(v);
      out_[key] = common;
    } else if (key == "not" && bars_values(a_) && bars_values(b_)) {
      out_[key] = a_[key];
      for (const json& v : b_[key]["enum"]) out_[key]["enum"].push_back(v);
    } else if (key == "uniqueItems") {
      out_[key] = a_[key] == true || b_[key] == true;
    } else if (is_annotation(key)) {
      out_[key] = b_[key];
    } else {
      refuse(key);
    }
  }
  static bool is_list(const json& s) { return s.contains("items") || s.contains("prefixItems"); }
  std::pair<json, json> numbers(const std::string& key) {
    if (!a_[key].is_number() || !b_[key].is_number()) refuse(key);
    return a_[key].get<double>() < b_[key].get<double>() ? std::pair(a_[key], b_[key]) : std::pair(b_[key], a_[key]);
  }
  void refuse(const std::string& key) const {
    c_.refuse("\"" + key + "\" of two schemas that both hold cannot be joined");
  }
  // A property that one schema does not list is one of its others.
  void objects() {
    for (const json* s : {&a_, &b_})
      if (s->contains("patternProperties")) refuse("patternProperties");
    const json none = json::object();
    const auto listed = [&](const json& s) -> const json& { return s.contains("properties") ? s["properties"] : none; };
    const auto others = [&](const json& s) {
      return s.contains("additionalProperties") ? s["additionalProperties"] : json(true);
    };
    json all = json::object();
    for (const auto& [s, o] : {std::pair(&a_, &b_), std::pair(&b_, &a_)})
      for (const auto& [name, value] : listed(*s).items()) {
        if (all.contains(name)) continue;
        all[name] = both(value, listed(*o).contains(name) ? listed(*o)[name] : others(*o));
      }
    out_["properties"] = all;
    out_["additionalProperties"] = both(others(a_), others(b_));
  }

  const json &a_, &b_;
  const merge_context& c_;
  json out_ = json::object();
};

}  // namespace

bool is_annotation(std::string_view key) {
  for (const char* name : {"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs",
                           "definitions", "deprecated", "readOnly", "writeOnly"})
    if (key == name) return true;
  return false;
}

json merged(const json& a, const json& b, const merge_context& c, int depth) {
  if (depth > most_depth) c.refuse("schemas that both hold refer to each other too often");
  if (a == false || b == false) return false;
  if (a == true) return b;
  if (b == true) return a;
  if (a.empty()) return b;
  if (b.empty()) return a;
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)})
    if (one->is_object() && one->contains("$ref")) {
      json rest = *one;
      rest.erase("$ref");
      const json& target = c.target(*one);
      const json joined = rest.empty() ? target : merged(target, rest, c, depth + 1);
      return one == &a ? merged(joined, *other, c, depth + 1) : merged(*other, joined, c, depth + 1);
    }
  if (!a.is_object() || !b.is_object()) c.refuse("expected schemas");
  return merger(a, b, c).run();
}

}  // namespace kiln::language::guidance
