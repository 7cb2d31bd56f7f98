#include "kiln/text/impl/guidance/json_schema.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/guidance/json_texts.hpp"

namespace kiln::language::guidance {

namespace {

using json = nlohmann::ordered_json;
using kinds = std::set<std::string>;

constexpr int most_depth = 300, most_json_depth = 1000;
constexpr std::uint32_t most_elements = 10'000;

const kinds all_kinds = {"object", "array", "string", "number", "integer", "boolean", "null"};
// What says nothing about which values are allowed.
const std::set<std::string, std::less<>> annotations = {"title",       "description", "default",  "examples",
                                                        "$schema",     "$id",         "$comment", "$defs",
                                                        "definitions", "deprecated",  "readOnly", "writeOnly"};

[[noreturn]] void fail(errc code, const std::string& path, const std::string& why) {
  raise(code, "JSON schema: " + path + ": " + why);
}

class schema_compiler {
 public:
  explicit schema_compiler(const json& root) : root_(root), texts_(a_) {
    a_.add_rule();
    known_.emplace(&root_, 0u);
    build(0, root_, "#", 0);
    std::vector<char> state(a_.rules.size(), 0);
    for (std::uint32_t r = 0; r < state.size(); ++r) check_reads(r, state);
  }
  automaton take() { return std::move(a_); }

 private:
  using node = automaton::node;

  static std::string below(const std::string& path, const std::string& key) { return path + "/" + key; }

  std::uint32_t rule_of(const json& schema, const std::string& path, int depth) {
    if (depth > most_depth)
      fail(errc::limit, path, "expected at most " + std::to_string(most_depth) + " schemas in each other");
    if (const auto known = known_.find(&schema); known != known_.end()) return known->second;
    const std::uint32_t r = a_.add_rule();
    known_.emplace(&schema, r);
    build(r, schema, path, depth);
    return r;
  }

  // A value of another schema, before which nothing has been read.
  void alternative(std::uint32_t r, const json& schema, const std::string& path, int depth) {
    const std::uint32_t other = rule_of(schema, path, depth + 1);
    first_calls_[r].emplace_back(other, path);
    const automaton::rule own = a_.rules[r];
    a_.places[own.begin].calls.push_back({other, own.end});
  }

  // A rule that comes back to itself without having read anything has no meaning.
  void check_reads(std::uint32_t r, std::vector<char>& state) const {
    if (state[r] == 2) return;
    state[r] = 1;
    if (const auto calls = first_calls_.find(r); calls != first_calls_.end())
      for (const auto& [other, path] : calls->second) {
        if (state[other] == 1) fail(errc::malformed, path, "refers to itself");
        check_reads(other, state);
      }
    state[r] = 2;
  }

  void allow_keys(const json& schema, const std::string& path,
                  const std::set<std::string, std::less<>>& allowed) const {
    for (const auto& [key, value] : schema.items())
      if (!allowed.contains(key) && !annotations.contains(key))
        fail(errc::unsupported, path, "\"" + key + "\" is not supported" + (schema.size() > 1 ? " here" : ""));
  }

  const json& target(const json& schema, const std::string& path) const {
    const json& ref = schema["$ref"];
    if (!ref.is_string() || !ref.get_ref<const std::string&>().starts_with('#'))
      fail(errc::unsupported, path, "expected a \"$ref\" that begins with #, found " + ref.dump());
    try {
      return root_.at(json::json_pointer(ref.get_ref<const std::string&>().substr(1)));
    } catch (const json::exception&) {
      fail(errc::not_found, path, "there is no " + ref.dump());
    }
  }

  kinds types(const json& schema, const std::string& path) const {
    if (!schema.contains("type")) return all_kinds;
    const json& type = schema["type"];
    kinds out;
    for (const json& one : type.is_array() ? type : json::array({type})) {
      if (!one.is_string() || !all_kinds.contains(one.get<std::string>()))
        fail(errc::malformed, path, "expected a \"type\" of JSON, found " + one.dump());
      out.insert(one.get<std::string>());
    }
    if (out.contains("number")) out.insert("integer");
    return out;
  }

  std::uint32_t count(const json& schema, const char* key, std::uint32_t otherwise, const std::string& path) const {
    if (!schema.contains(key)) return otherwise;
    const json& value = schema[key];
    const double n = value.is_number() ? value.get<double>() : -1;
    if (n < 0 || n > most_elements || n != static_cast<std::uint32_t>(n))
      fail(errc::malformed, path,
           "\"" + std::string(key) + "\": expected an integer from 0 to " + std::to_string(most_elements) + ", found " +
               value.dump());
    return static_cast<std::uint32_t>(n);
  }

  void build(std::uint32_t r, const json& schema, const std::string& path, int depth) {
    const automaton::rule own = a_.rules[r];
    if (schema.is_boolean()) {
      if (schema.get<bool>()) a_.add_free(texts_.call(own.begin, texts_.any()), own.end);
      return;
    }
    if (!schema.is_object()) fail(errc::malformed, path, "expected a schema, found " + schema.dump());
    if (schema.contains("$ref")) {
      allow_keys(schema, path, {"$ref"});
      return alternative(r, target(schema, path), schema["$ref"].get<std::string>(), depth);
    }
    for (const char* key : {"anyOf", "oneOf"})
      if (schema.contains(key)) {
        allow_keys(schema, path, {key});
        return alternatives(r, schema[key], below(path, key), depth, std::string_view(key) == "oneOf");
      }
    if (schema.contains("enum") || schema.contains("const")) return values(r, schema, path);
    allow_keys(schema, path,
               {"type", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems",
                "maxItems", "minLength", "maxLength", "pattern"});
    const kinds allowed = types(schema, path);
    const auto add = [&](node to) { a_.add_free(to, own.end); };
    if (allowed.contains("object")) add(object(own.begin, schema, path, depth));
    if (allowed.contains("array")) add(array(own.begin, schema, path, depth));
    if (allowed.contains("string")) add(string(own.begin, schema, path));
    if (allowed.contains("number"))
      add(texts_.number(own.begin));
    else if (allowed.contains("integer"))
      add(texts_.integer(own.begin));
    if (allowed.contains("boolean")) {
      add(texts_.text(own.begin, "true"));
      add(texts_.text(own.begin, "false"));
    }
    if (allowed.contains("null")) add(texts_.text(own.begin, "null"));
  }

  void alternatives(std::uint32_t r, const json& list, const std::string& path, int depth, bool exclusive) {
    if (!list.is_array() || list.empty()) fail(errc::malformed, path, "expected a list of schemas");
    for (std::size_t k = 0; k < list.size(); ++k) alternative(r, list[k], below(path, std::to_string(k)), depth);
    for (std::size_t k = 0; exclusive && k < list.size(); ++k)
      for (std::size_t j = 0; j < k; ++j)
        if (!are_apart(list[j], list[k], path))
          fail(errc::unsupported, path,
               "expected alternatives of different types or constants, found that " + std::to_string(j) + " and " +
                   std::to_string(k) + " may both hold");
  }

  // Whether no value belongs to both, as far as types, constants and required constants of objects tell.
  bool are_apart(const json& a, const json& b, const std::string& path, int depth = 0) const {
    if (depth > most_depth) return false;
    if (a.is_boolean() || b.is_boolean()) return a == false || b == false;
    for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      if (one->contains("$ref")) return are_apart(target(*one, path), *other, path, depth + 1);
      for (const char* key : {"anyOf", "oneOf"})
        if (one->contains(key))
          return std::all_of((*one)[key].begin(), (*one)[key].end(),
                             [&](const json& part) { return are_apart(part, *other, path, depth + 1); });
    }
    const auto constants = [](const json& s) {
      return s.contains("const") ? json::array({s["const"]}) : s.value("enum", json());
    };
    const json of_a = constants(a), of_b = constants(b);
    if (!of_a.is_null() && !of_b.is_null())
      return std::none_of(of_a.begin(), of_a.end(),
                          [&](const json& v) { return std::find(of_b.begin(), of_b.end(), v) != of_b.end(); });
    const auto kinds_of = [&](const json& s, const json& fixed) {
      if (fixed.is_null()) return types(s, path);
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
          are_apart(of_name, b["properties"][name], path, depth + 1))
        return true;
    return false;
  }

  static kinds kinds_of_value(const json& v) {
    if (v.is_object()) return {"object"};
    if (v.is_array()) return {"array"};
    if (v.is_string()) return {"string"};
    if (v.is_boolean()) return {"boolean"};
    if (v.is_null()) return {"null"};
    // 1.0 is an integer (JSON Schema 2020-12, core, section 4.2.3).
    const double n = v.get<double>();
    return n == std::floor(n) ? kinds{"integer", "number"} : kinds{"number"};
  }

  void values(std::uint32_t r, const json& schema, const std::string& path) {
    const bool one = schema.contains("const");
    allow_keys(schema, path, {one ? "const" : "enum", "type"});
    const json list = one ? json::array({schema["const"]}) : schema["enum"];
    if (!list.is_array()) fail(errc::malformed, path, "\"enum\": expected a list, found " + list.dump());
    const kinds allowed = types(schema, path);
    const automaton::rule own = a_.rules[r];
    for (const json& v : list) {
      const kinds of_value = kinds_of_value(v);
      if (std::any_of(of_value.begin(), of_value.end(), [&](const auto& k) { return allowed.contains(k); }))
        a_.add_free(texts_.text(own.begin, v.dump()), own.end);
    }
  }

  node object(node from, const json& schema, const std::string& path, int depth) {
    const json properties = json::object();
    const json& listed = schema.contains("properties") ? schema["properties"] : properties;
    if (!listed.is_object()) fail(errc::malformed, path, "\"properties\": expected an object, found " + listed.dump());
    std::vector<std::string> required;
    const json none = json::array();
    const json& names_required = schema.contains("required") ? schema["required"] : none;
    if (!names_required.is_array())
      fail(errc::malformed, path, "\"required\": expected a list, found " + names_required.dump());
    for (const json& name : names_required) {
      if (!name.is_string()) fail(errc::malformed, path, "\"required\": expected names, found " + name.dump());
      required.push_back(name.get<std::string>());
    }
    std::optional<std::uint32_t> others = texts_.any();
    if (schema.contains("additionalProperties")) {
      const json& more = schema["additionalProperties"];
      others.reset();
      if (more != false) others = rule_of(more, below(path, "additionalProperties"), depth + 1);
    }
    std::vector<json_texts::property> all;
    std::vector<std::string> names;
    const auto add = [&](const std::string& name, std::uint32_t rule) {
      all.push_back({json(name).dump(), rule, std::find(required.begin(), required.end(), name) != required.end()});
      names.push_back(name);
    };
    for (const auto& [name, value] : listed.items())
      add(name, rule_of(value, below(below(path, "properties"), name), depth + 1));
    for (const std::string& name : required) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      if (!others) return a_.add_place();  // no object has what it must have
      add(name, *others);
    }
    return texts_.object(from, all, others, names);
  }

  node array(node from, const json& schema, const std::string& path, int depth) {
    std::vector<std::uint32_t> first;
    if (schema.contains("prefixItems")) {
      const json& list = schema["prefixItems"];
      if (!list.is_array()) fail(errc::malformed, path, "\"prefixItems\": expected a list, found " + list.dump());
      for (std::size_t k = 0; k < list.size(); ++k)
        first.push_back(rule_of(list[k], below(below(path, "prefixItems"), std::to_string(k)), depth + 1));
    }
    const std::uint32_t others =
        schema.contains("items") ? rule_of(schema["items"], below(path, "items"), depth + 1) : texts_.any();
    return texts_.array(from, first, others, count(schema, "minItems", 0, path),
                        count(schema, "maxItems", unbounded, path));
  }

  node string(node from, const json& schema, const std::string& path) {
    const std::uint32_t least = count(schema, "minLength", 0, path), most = count(schema, "maxLength", unbounded, path);
    if (!schema.contains("pattern")) return least > most ? a_.add_place() : texts_.string(from, least, most);
    if (least != 0 || most != unbounded)
      fail(errc::unsupported, path, "\"pattern\" is not supported beside \"minLength\" or \"maxLength\"");
    if (!schema["pattern"].is_string())
      fail(errc::malformed, path, "\"pattern\": expected a string, found " + schema["pattern"].dump());
    try {
      return texts_.string(from, parse_expression(schema["pattern"].get_ref<const std::string&>(), extent::part));
    } catch (const error& e) {
      fail(e.code(), path, "\"pattern\": " + e.message());
    }
  }

  const json& root_;
  automaton a_;
  json_texts texts_;
  std::map<const json*, std::uint32_t> known_;
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, std::string>>> first_calls_;
};

}  // namespace

automaton automaton_of_schema(std::string_view schema) {
  json root;
  try {
    root = json::parse(schema, [](int depth, json::parse_event_t, const json&) {
      if (depth > most_json_depth)
        raise(errc::limit,
              "JSON schema: expected at most " + std::to_string(most_json_depth) + " values in each other");
      return true;
    });
  } catch (const json::exception& e) {
    raise(errc::malformed, std::string("JSON schema: expected JSON: ") + e.what());
  }
  return schema_compiler(root).take();
}

}  // namespace kiln::language::guidance
