#include "kiln/text/chat_template.hpp"

#include <nlohmann/json.hpp>

#include "kiln/core/error.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::language {
namespace {

using json = nlohmann::ordered_json;

json parse(std::string_view text, const char* what) {
  try {
    return json::parse(text);
  } catch (const json::exception& e) {
    raise(errc::malformed, std::string(what) + ": expected JSON: " + e.what());
  }
}

json parse_as(std::string_view text, json::value_t type, const char* what, const char* expected) {
  json j = parse(text, what);
  if (j.type() != type)
    raise(errc::invalid_argument, std::string(what) + ": expected " + expected + ", found " + j.type_name());
  return j;
}

const std::string& member(const json& entry, const char* name) {
  if (!entry.is_object() || !entry.contains(name) || !entry[name].is_string())
    raise(errc::malformed, std::string("a list of chat templates: expected objects with the strings 'name' and "
                                       "'template', found one without '") +
                               name + "'");
  return entry[name].get_ref<const std::string&>();
}

bool is_list_of_templates(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != text.npos && text[begin] == '[' && json::accept(text);
}

// Strings as they are, `content` of objects; what names no token is left out.
json tokens_of(std::string_view text) {
  const json given = parse_as(text, json::value_t::object, "special tokens", "an object");
  json out = json::object();
  for (const auto& [name, v] : given.items()) {
    const json& token = v.is_object() && v.contains("content") ? v["content"] : v;
    if (!token.is_null()) out[name] = token;
  }
  return out;
}

std::string variables_of(const tokenizer& t) {
  json out = json::object();
  for (const auto& [name, v] : t.template_variables()) out[name] = v;
  return out.dump();
}

}  // namespace

chat_template chat_template::from(std::string_view text, std::string_view special_tokens_json) {
  chat_template t;
  t.special_tokens_ = tokens_of(special_tokens_json).dump();
  if (!is_list_of_templates(text)) {
    t.templates_.emplace("default", jinja::compiled_template(text, "chat template"));
    return t;
  }
  for (const json& entry : parse(text, "a list of chat templates")) {
    const std::string& name = member(entry, "name");
    t.templates_.insert_or_assign(name,
                                  jinja::compiled_template(member(entry, "template"), "chat template '" + name + "'"));
  }
  return t;
}

chat_template chat_template::of(const tokenizer& source, std::string_view text) {
  return from(text, variables_of(source));
}
chat_template chat_template::of(const tokenizer& source) {
  chat_template t;
  t.special_tokens_ = variables_of(source);
  for (const char* name : {"default", "tool_use"})
    if (const std::string_view text = source.chat_template(name); !text.empty())
      t.templates_.emplace(name, jinja::compiled_template(text, std::string("chat template '") + name + "'"));
  return t;
}

const jinja::compiled_template& chat_template::choose(const request& r) const {
  if (empty())
    raise(errc::not_found,
          "there is no chat template: expected one in tokenizer_config.json or chat_template.jinja, or "
          "given with the call");
  const bool has_tools = !r.tools_json.empty() && r.tools_json != "null";
  auto at = templates_.find(!r.name.empty() ? r.name : has_tools ? "tool_use" : "default");
  if (at == templates_.end() && r.name.empty()) at = templates_.find("default");
  if (at != templates_.end()) return at->second;
  std::string known;
  for (const auto& [name, t] : templates_) known += (known.empty() ? "" : ", ") + name;
  raise(errc::not_found,
        "there is no chat template '" + std::string(r.name.empty() ? "default" : r.name) + "': found " + known);
}

std::string chat_template::render(const request& r, const jinja::limits& bounds) const {
  const jinja::compiled_template& chosen = choose(r);
  json variables = json::parse(special_tokens_);
  variables["messages"] = parse_as(r.messages_json, json::value_t::array, "messages", "a list");
  variables["tools"] = nullptr;
  if (!r.tools_json.empty() && r.tools_json != "null")
    variables["tools"] = parse_as(r.tools_json, json::value_t::array, "tools", "a list");
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = r.add_generation_prompt;
  const json extra = parse_as(r.variables_json, json::value_t::object, "variables of a chat template", "an object");
  for (const auto& [name, v] : extra.items()) variables[name] = v;
  return chosen.render(variables.dump(-1, ' ', false, json::error_handler_t::replace), bounds);
}

}  // namespace kiln::language
