#include "kiln/text/impl/guidance/json_schema.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "kiln/text/impl/guidance/json_kinds.hpp"
#include "kiln/text/impl/guidance/json_leaves.hpp"
#include "kiln/text/impl/guidance/json_merge.hpp"
#include "kiln/text/impl/guidance/json_negate.hpp"

namespace kiln::language::guidance {

namespace {

using json = nlohmann::ordered_json;

constexpr int most_depth = 300, most_json_depth = 1000;

constexpr std::size_t most_distinct = 10;  // values of "uniqueItems": 1024 sets

[[noreturn]] void fail(errc code, const std::string& path, const std::string& why) { schema_fault(code, path, why); }

class schema_compiler {
 public:
  schema_compiler(automaton& a, const json& root) : root_(root), a_(a), texts_(a_), rule_(a_.add_rule()) {
    known_.emplace(&root_, rule_);
    build(rule_, root_, "#", 0);
    std::vector<char> state(a_.rules.size(), 0);
    for (std::uint32_t r = 0; r < state.size(); ++r) check_reads(r, state);
  }
  std::uint32_t rule() const { return rule_; }

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
      if (!allowed.contains(key) && !is_annotation(key))
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

  void build(std::uint32_t r, const json& schema, const std::string& path, int depth) {
    const automaton::rule own = a_.rules[r];
    if (schema.is_boolean()) {
      if (schema.get<bool>()) a_.add_free(texts_.call(own.begin, texts_.any()), own.end);
      return;
    }
    if (!schema.is_object()) fail(errc::malformed, path, "expected a schema, found " + schema.dump());
    if (schema.contains("$ref") && !has_others(schema, "$ref"))
      return alternative(r, target(schema, path), schema["$ref"].get<std::string>(), depth);
    if (schema.contains("if") || schema.contains("then") || schema.contains("else") ||
        (schema.contains("not") && !bars_values(schema)))
      return conditions(r, schema, path, depth);
    for (const char* key : {"$ref", "allOf"})
      if (schema.contains(key)) return all_of(r, schema, path, depth, key);
    for (const char* key : {"anyOf", "oneOf"})
      if (schema.contains(key)) return alternatives(r, schema, path, depth, key);
    if (schema.contains("enum") || schema.contains("const")) return values(r, schema, path);
    allow_keys(schema, path,
               {"type",
                "properties",
                "required",
                "additionalProperties",
                "patternProperties",
                "items",
                "prefixItems",
                "minItems",
                "maxItems",
                "uniqueItems",
                "minLength",
                "maxLength",
                "pattern",
                "format",
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
                "minProperties",
                "maxProperties",
                "not"});
    const kinds allowed = kinds_of_schema(schema, path);
    const json barred = schema.contains("not") ? schema["not"]["enum"] : json::array();
    const auto bars = [&](const json& v) { return std::find(barred.begin(), barred.end(), v) != barred.end(); };
    for (const json& v : barred)
      if (!v.is_string() && !v.is_boolean() && !v.is_null())
        for (const std::string& kind : kinds_of_value(v))
          if (allowed.contains(kind))
            fail(errc::unsupported, path, "\"not\" of " + v.dump() + " is not supported among values of type " + kind);
    const auto add = [&](node to) { a_.add_free(to, own.end); };
    if (allowed.contains("object")) add(object(own.begin, schema, path, depth));
    if (allowed.contains("array")) add(array(own.begin, schema, path, depth));
    if (allowed.contains("string")) add(string(own.begin, schema, barred, path));
    if (allowed.contains("integer"))
      add(add_schema_number(a_, texts_, own.begin, schema, path, !allowed.contains("number")));
    if (allowed.contains("boolean"))
      for (const bool value : {true, false})
        if (!bars(value)) add(texts_.text(own.begin, value ? "true" : "false"));
    if (allowed.contains("null") && !bars(nullptr)) add(texts_.text(own.begin, "null"));
  }

  static bool has_others(const json& schema, std::string_view key) {
    for (const auto& [name, value] : schema.items())
      if (name != key && !is_annotation(name)) return true;
    return false;
  }
  // A schema that was put together lives as long as this; what was put together before has its rule already.
  const json& kept(json schema) {
    std::string text = schema.dump();
    return joined_.try_emplace(std::move(text), std::move(schema)).first->second;
  }
  merge_context context(const std::string& path) const {
    return {[this, &path](const json& s) -> const json& { return target(s, path); },
            [&path](const std::string& why) { fail(errc::unsupported, path, why); }};
  }
  json joined(const json& a, const json& b, const std::string& path) const { return merged(a, b, context(path)); }
  // What holds beside "not", and as "if", "then" and "else" have it: alternatives without these.
  void conditions(std::uint32_t r, const json& schema, const std::string& path, int depth) {
    const merge_context c = context(path);
    json beside = schema;
    for (const char* key : {"if", "then", "else"}) beside.erase(key);
    std::vector<json> all;
    if (schema.contains("not") && !bars_values(schema)) {
      beside.erase("not");
      all = both_of({beside}, negated(schema["not"], c), c);
    } else {
      all = {beside};
    }
    if (schema.contains("if")) {
      const json yes = schema.value("then", json(true)), no = schema.value("else", json(true));
      std::vector<json> branches = both_of({schema["if"]}, {yes}, c);
      for (json& other : both_of(negated(schema["if"], c), {no}, c)) branches.push_back(std::move(other));
      all = both_of(all, branches, c);
    }
    for (json& one : all) alternative(r, kept(std::move(one)), path, depth);
  }
  node string(node from, const json& schema, const json& barred, const std::string& path) {
    std::vector<std::string> names;
    for (const json& v : barred)
      if (v.is_string()) names.push_back(v.get<std::string>());
    if (names.empty()) return add_schema_string(a_, texts_, from, schema, path);
    for (const char* key : {"minLength", "maxLength", "pattern", "format"})
      if (schema.contains(key))
        fail(errc::unsupported, path, "\"not\" of a string beside \"" + std::string(key) + "\" is not supported");
    return texts_.string_other_than(from, names);
  }
  // All of a list, or what is referred to, and what stands beside it.
  void all_of(std::uint32_t r, const json& schema, const std::string& path, int depth, const char* key) {
    json all = schema;
    all.erase(key);
    const bool is_list = std::string_view(key) == "allOf";
    if (is_list && !schema[key].is_array()) fail(errc::malformed, below(path, key), "expected a list of schemas");
    for (const json& part : is_list ? schema[key] : json::array({json::object({{key, schema[key]}})}))
      all = joined(all, part, below(path, key));
    alternative(r, kept(std::move(all)), below(path, key), depth);
  }

  void alternatives(std::uint32_t r, const json& schema, const std::string& at, int depth, const char* key) {
    const std::string path = below(at, key);
    json list = schema[key];
    if (!list.is_array() || list.empty()) fail(errc::malformed, path, "expected a list of schemas");
    const bool is_alone = !has_others(schema, key);
    if (!is_alone) {  // what stands beside it holds for each
      json beside = schema;
      beside.erase(key);
      for (json& one : list) one = joined(beside, one, path);
    }
    for (std::size_t k = 0; k < list.size(); ++k)
      alternative(r, is_alone ? schema[key][k] : kept(list[k]), below(path, std::to_string(k)), depth);
    for (std::size_t k = 0; std::string_view(key) == "oneOf" && k < list.size(); ++k)
      for (std::size_t j = 0; j < k; ++j)
        if (!are_apart(list[j], list[k], context(path), path))
          fail(errc::unsupported, path,
               "expected alternatives of different types or constants, found that " + std::to_string(j) + " and " +
                   std::to_string(k) + " may both hold");
  }

  void values(std::uint32_t r, const json& schema, const std::string& path) {
    const bool one = schema.contains("const");
    allow_keys(schema, path, {"const", "enum", "type", "not"});
    const json list = one ? json::array({schema["const"]}) : schema["enum"];
    if (!list.is_array()) fail(errc::malformed, path, "\"enum\": expected a list, found " + list.dump());
    const kinds allowed = kinds_of_schema(schema, path);
    const automaton::rule own = a_.rules[r];
    const auto is_in = [](const json& all, const json& v) { return std::find(all.begin(), all.end(), v) != all.end(); };
    for (const json& v : list) {
      if (one && schema.contains("enum") && !is_in(schema["enum"], v)) continue;
      if (schema.contains("not") && is_in(schema["not"]["enum"], v)) continue;
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
    if (schema.contains("patternProperties")) return named_by_pattern(from, schema, path, depth);
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
    return texts_.object(from, all, others, names, nullptr, schema_count(schema, "minProperties", 0, path),
                         schema_count(schema, "maxProperties", unbounded, path));
  }

  // An object whose names all match one pattern.
  node named_by_pattern(node from, const json& schema, const std::string& path, int depth) {
    const json& patterns = schema["patternProperties"];
    if (!patterns.is_object() || patterns.size() != 1 || schema.value("additionalProperties", json(true)) != false ||
        schema.contains("properties") || schema.contains("required"))
      fail(errc::unsupported, path,
           "\"patternProperties\" is supported with one pattern, \"additionalProperties\" false, and without "
           "\"properties\" and \"required\"");
    const std::string pattern = patterns.begin().key();
    const std::uint32_t value =
        rule_of(patterns.begin().value(), below(below(path, "patternProperties"), pattern), depth + 1);
    try {
      const expression names = parse_expression(pattern, extent::part);
      return texts_.object(from, {}, value, {}, &names, schema_count(schema, "minProperties", 0, path),
                           schema_count(schema, "maxProperties", unbounded, path));
    } catch (const error& e) {
      fail(e.code(), path, "\"patternProperties\": " + e.message());
    }
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
    if (schema.value("uniqueItems", json(false)) == true && schema_count(schema, "maxItems", unbounded, path) > 1)
      return distinct(from, schema, path);
    return texts_.array(from, first, others, schema_count(schema, "minItems", 0, path),
                        schema_count(schema, "maxItems", unbounded, path));
  }

  // Elements that are told apart have to be few, and known.
  node distinct(node from, const json& schema, const std::string& path) {
    json items = schema.value("items", json(true));
    for (int k = 0; k < most_depth && items.is_object() && items.contains("$ref") && !has_others(items, "$ref"); ++k)
      items = target(items, path);
    const json list = !items.is_object()                     ? json()
                      : items.contains("const")              ? json::array({items["const"]})
                      : items.contains("enum")               ? items["enum"]
                      : items == json({{"type", "boolean"}}) ? json::array({true, false})
                                                             : json();
    if (schema.contains("prefixItems") || !list.is_array() || list.size() > most_distinct)
      fail(errc::unsupported, path,
           "\"uniqueItems\" is supported with \"items\" of an \"enum\" of at most " + std::to_string(most_distinct) +
               " values, without \"prefixItems\"");
    allow_keys(items, path, {"const", "enum", "type"});
    const kinds allowed = kinds_of_schema(items, path);
    std::set<std::string> texts;
    for (const json& v : list)
      for (const std::string& kind : kinds_of_value(v))
        if (allowed.contains(kind)) texts.insert(v.dump());
    return texts_.distinct(from, {texts.begin(), texts.end()}, schema_count(schema, "minItems", 0, path),
                           schema_count(schema, "maxItems", unbounded, path));
  }

  const json& root_;
  automaton& a_;
  json_texts texts_;
  std::uint32_t rule_;
  std::map<const json*, std::uint32_t> known_;
  std::map<std::string, json> joined_;  // schemas of `allOf`, by their text
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, std::string>>> first_calls_;
};

}  // namespace

std::uint32_t add_schema(automaton& a, std::string_view schema) {
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
  return schema_compiler(a, root).rule();
}

automaton automaton_of_schema(std::string_view schema) {
  automaton a;
  add_schema(a, schema);
  return a;
}

}  // namespace kiln::language::guidance
