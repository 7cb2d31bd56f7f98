#include "kiln/interface/serve/completion_request.hpp"

#include <charconv>

#include "kiln/interface/serve/impl/prompts.hpp"
#include "kiln/text/guidance/guide.hpp"

namespace kiln::serve {

namespace {

constexpr std::size_t most_choices = 128, most_stops = 16;
constexpr std::int64_t most_priority = 1'000'000;

using tool_use = completion_request::tool_use;

void read_bias(completion_request& to, fields& f) {
  const json* const v = f.get("logit_bias");
  if (!v) return;
  fields all(*v, "logit_bias");
  for (const auto& [name, value] : v->items()) {
    language::token id = -1;
    const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (fault != std::errc() || end != name.data() + name.size() || id < 0)
      throw api_error("logit_bias: expected numbers of tokens as keys, found \"" + name.substr(0, 40) + "\"",
                      "logit_bias");
    to.bias.emplace_back(id, static_cast<float>(all.number(name, -100, 100).value_or(0)));
  }
}

void read_stops(completion_request& to, fields& f) {
  const json* const v = f.get("stop");
  if (!v) return;
  const auto take = [&](const json& s) {
    if (!s.is_string() || s.get_ref<const std::string&>().empty())
      f.refuse("stop", "a string, or a list of strings, that are not empty");
    to.stop.push_back(s.get<std::string>());
  };
  if (!v->is_array()) return take(*v);
  if (v->size() > most_stops) f.refuse("stop", "at most " + std::to_string(most_stops) + " strings");
  for (const json& s : *v) take(s);
}

bool are_tokens(const json& v) {
  if (!v.is_array() || v.empty()) return false;
  for (const json& t : v)
    if (!t.is_number_integer() || t.get<std::int64_t>() < 0 ||
        t.get<std::int64_t>() > std::numeric_limits<language::token>::max())
      return false;
  return true;
}

void read_end_tokens(completion_request& to, fields& f) {
  const json* const v = f.get("stop_token_ids");
  if (!v || (v->is_array() && v->empty())) return;
  if (!are_tokens(*v) || v->size() > most_stops)
    f.refuse("stop_token_ids", "a list of at most " + std::to_string(most_stops) + " tokens");
  to.end_tokens = v->get<language::tokens>();
}

// What an answer keeps to, which one field may say.
void guide_by(completion_request& to, fields& f, std::string_view name, std::string_view kind, std::string text) {
  if (!to.guidance_kind.empty()) f.refuse(name, "no such field beside " + to.guidance_field);
  to.guidance_field = f.path_of(name), to.guidance_kind = kind, to.guidance = std::move(text);
}

// A schema, or the text of one.
void guide_by_schema(completion_request& to, fields& f, std::string_view name) {
  const json* const v = f.get(name);
  if (!v) return;
  const json schema = v->is_string() ? parse_value(v->get_ref<const std::string&>(), f.path_of(name)) : *v;
  if (!schema.is_object()) f.refuse(name, "a JSON schema");
  guide_by(to, f, name, "json_schema", text_of(schema));
}

void guide_by_choice(completion_request& to, fields& f, std::string_view name) {
  const json* const v = f.get(name);
  if (!v) return;
  const std::string form = "a list of texts that are not empty";
  if (!v->is_array() || v->empty()) f.refuse(name, form);
  std::vector<std::string> texts;
  for (const json& one : *v) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty()) f.refuse(name, form);
    texts.push_back(one.get<std::string>());
  }
  guide_by(to, f, name, "regex", language::guide::expression_of(texts));
}

void guide_by_text(completion_request& to, fields& f, std::string_view name, std::string_view kind) {
  auto text = f.text(name);
  if (!text) return;
  if (text->empty()) f.refuse(name, "a text that is not empty");
  guide_by(to, f, name, kind, std::move(*text));
}

// As vLLM and llama.cpp name them.
void read_guides(completion_request& to, fields& f) {
  const auto read = [&](fields& at, const char* schema, const char* choice, const char* regex, const char* grammar) {
    guide_by_schema(to, at, schema);
    guide_by_choice(to, at, choice);
    guide_by_text(to, at, regex, "regex");
    guide_by_text(to, at, grammar, "lark_grammar");
  };
  read(f, "guided_json", "guided_choice", "guided_regex", "guided_grammar");
  guide_by_schema(to, f, "json_schema");
  if (const json* const v = f.get("structured_outputs")) {
    fields own(*v, "structured_outputs");
    read(own, "json", "choice", "regex", "grammar");
    if (own.flag("json_object").value_or(false))
      guide_by(to, own, "json_object", "json_schema", R"({"type":"object"})");
    own.end();
  }
}

// What both kinds of requests share.
void read_common(completion_request& to, fields& f) {
  to.model = f.text("model").value_or("");
  to.choices = to.best_of = static_cast<std::size_t>(f.whole("n", 1, most_choices).value_or(1));
  to.stream = f.flag("stream").value_or(false);
  if (const json* const o = f.get("stream_options")) {
    if (!to.stream) f.refuse("stream_options", "no such field without stream");
    fields own(*o, "stream_options");
    to.include_usage = own.flag("include_usage").value_or(false);
    own.ignore({"include_obfuscation"});
    own.end();
  }
  to.max_tokens = f.whole("max_tokens", to.is_chat ? 1 : 0);
  to.min_tokens = f.whole("min_tokens", 0).value_or(0);
  to.ignores_end = f.flag("ignore_eos").value_or(false);
  to.seed = f.whole("seed", std::numeric_limits<std::int64_t>::min());
  to.priority = static_cast<int>(f.whole("priority", -most_priority, most_priority).value_or(0));
  to.temperature = f.number("temperature", 0, 2);
  to.top_p = f.number("top_p", 0, 1);
  to.top_k = f.whole("top_k", -1);
  to.min_p = f.number("min_p", 0, 1);
  to.repetition_penalty = f.number("repetition_penalty", 1e-3, 100);
  to.presence_penalty = f.number("presence_penalty", -2, 2).value_or(0);
  to.frequency_penalty = f.number("frequency_penalty", -2, 2).value_or(0);
  read_bias(to, f);
  read_stops(to, f);
  read_end_tokens(to, f);
  if (const json* const o = f.get("response_format")) {
    fields own(*o, "response_format");
    const std::string kind = own.text("type").value_or("");
    if (kind == "json_object") {
      guide_by(to, f, "response_format", "json_schema", R"({"type":"object"})");
    } else if (kind == "json_schema") {
      const json* const named = own.get("json_schema");
      if (!named) own.refuse("json_schema", "an object with a schema");
      fields form(*named, "response_format.json_schema");
      const json* const schema = form.get("schema");
      if (!schema || !schema->is_object()) form.refuse("schema", "a JSON schema");
      form.ignore({"name", "description", "strict"});
      form.end();
      guide_by(to, f, "response_format", "json_schema", text_of(*schema));
    } else if (kind != "text") {
      own.refuse("type", "text, json_object or json_schema");
    }
    own.end();
  }
  read_guides(to, f);
  f.ignore({"cache_prompt", "user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"});
}

// A text that has to go on can't end where its form does.
void check_length(const completion_request& r, const fields& f) {
  const auto most = r.max_tokens || r.is_chat ? r.max_tokens : completion_request::tokens_of_text;
  if (most && r.min_tokens > *most) f.refuse("min_tokens", "at most the " + std::to_string(*most) + " of max_tokens");
  if (r.ignores_end && !r.end_tokens.empty()) f.refuse("ignore_eos", "no such field beside stop_token_ids");
  if (r.guidance_kind.empty() || (r.min_tokens == 0 && !r.ignores_end)) return;
  f.refuse(r.ignores_end ? "ignore_eos" : "min_tokens", "no such field beside a form that the answer keeps to");
}

// Roles and contents as templates know them: parts of text are joined, and a call's arguments become an object.
json message_of(const json& m, const std::string& path) {
  fields f(m, path);
  const auto role = f.text("role");
  if (!role) f.refuse("role", "a string");
  json out = m;
  if (*role == "developer") out["role"] = "system";
  const json* const content = f.get("content");
  if (content && content->is_array()) {
    std::string text;
    for (std::size_t k = 0; k < content->size(); ++k) {
      fields part((*content)[k], path + ".content[" + std::to_string(k) + "]");
      if (part.text("type").value_or("") != "text") part.refuse("type", "text, which alone the models read here");
      const auto own = part.text("text");
      if (!own) part.refuse("text", "a string");
      text += *own;
    }
    out["content"] = text;
  } else if (content && !content->is_string()) {
    f.refuse("content", "a string or a list of parts");
  } else if (!content && !f.get("tool_calls")) {
    f.refuse("content", "a string");
  }
  if (const json* const calls = f.get("tool_calls")) {
    if (!calls->is_array()) f.refuse("tool_calls", "a list of calls");
    for (std::size_t k = 0; k < calls->size(); ++k) {
      const std::string at = path + ".tool_calls[" + std::to_string(k) + "]";
      fields call((*calls)[k], at);
      const json* const function = call.get("function");
      if (!function) call.refuse("function", "an object");
      fields own(*function, at + ".function");
      const auto arguments = own.text("arguments");
      if (!own.text("name")) own.refuse("name", "a string");
      if (!arguments) continue;
      out["tool_calls"][k]["function"]["arguments"] =
          parse_body(arguments->empty() ? "{}" : *arguments, at + ".function.arguments");
    }
  }
  return out;
}

void read_tools(completion_request& to, fields& f) {
  const json* const tools = f.get("tools");
  const json* const choice = f.get("tool_choice");
  to.parallel_tools = f.flag("parallel_tool_calls").value_or(true);
  std::set<std::string> names;
  if (tools) {
    if (!tools->is_array() || tools->size() > most_choices)
      f.refuse("tools", "a list of at most " + std::to_string(most_choices) + " functions");
    for (std::size_t k = 0; k < tools->size(); ++k) {
      const std::string at = "tools[" + std::to_string(k) + "]";
      fields tool((*tools)[k], at);
      if (tool.text("type").value_or("") != "function") tool.refuse("type", "function");
      const json* const function = tool.get("function");
      if (!function) tool.refuse("function", "an object");
      fields own(*function, at + ".function");
      const auto name = own.text("name");
      if (!name || name->empty()) own.refuse("name", "a name");
      if (!names.insert(*name).second) own.refuse("name", "names that differ");
      if (const json* const p = own.get("parameters"); p && !p->is_object()) own.refuse("parameters", "a JSON schema");
    }
    if (!tools->empty()) to.tools_json = text_of(*tools), to.tools = tool_use::automatic;
  }
  if (!choice) return;
  if (names.empty()) f.refuse("tool_choice", "no such field without tools");
  if (choice->is_string()) {
    const std::string c = *choice;
    if (c != "none" && c != "auto" && c != "required") f.refuse("tool_choice", "none, auto, required or a function");
    to.tools = c == "none" ? tool_use::none : c == "auto" ? tool_use::automatic : tool_use::required;
    return;
  }
  fields own(*choice, "tool_choice");
  const json* const function = own.get("function");
  if (!function) own.refuse("function", "an object");
  fields named(*function, "tool_choice.function");
  const auto name = named.text("name");
  if (!name || !names.contains(*name)) named.refuse("name", "the name of a function of tools");
  named.end();
  own.ignore({"type"});
  own.end();
  to.tools = tool_use::named, to.tool_name = *name;
}

}  // namespace

std::vector<completion_request::prompt> read_prompts(fields& f, std::string_view name) {
  const json* const all = f.get(name);
  const std::string form = "a string, tokens, or a list of either";
  if (!all) f.refuse(name, form);
  std::vector<completion_request::prompt> out;
  const auto take = [&](const json& p) {
    if (p.is_string())
      out.emplace_back(p.get<std::string>());
    else if (are_tokens(p))
      out.emplace_back(p.get<language::tokens>());
    else
      f.refuse(name, form);
  };
  if (all->is_array() && !are_tokens(*all))
    for (const json& p : *all) take(p);
  else
    take(*all);
  if (out.empty()) f.refuse(name, form);
  return out;
}

completion_request read_text_request(std::string_view body) {
  const json all = parse_body(body);
  fields f(all);
  completion_request out;
  read_common(out, f);
  out.prompts = read_prompts(f, "prompt");
  out.echo = f.flag("echo").value_or(false);
  out.adds_special = f.flag("add_special_tokens").value_or(false);
  if (const auto n = f.whole("logprobs", 0, 20)) out.logprobs = static_cast<std::size_t>(*n);
  if (out.max_tokens == 0 && !out.echo) f.refuse("max_tokens", "at least 1 without echo");
  if (const auto best = f.whole("best_of", 1, most_choices)) out.best_of = static_cast<std::size_t>(*best);
  if (out.best_of < out.choices) f.refuse("best_of", "at least n");
  if (out.best_of > out.choices && out.stream) f.refuse("best_of", "as many as n in a stream");
  if (const std::size_t all = out.prompts.size() * out.best_of; all > most_choices)
    throw api_error("prompts times n or best_of: expected at most " + std::to_string(most_choices) + ", found " +
                        std::to_string(all),
                    out.best_of > out.choices ? "best_of" : "n");
  if (const auto suffix = f.text("suffix"); suffix && !suffix->empty())
    f.refuse("suffix", "none: models here continue texts");
  check_length(out, f);
  f.end();
  return out;
}

namespace {

std::string read_messages(fields& f) {
  const json* const messages = f.get("messages");
  if (!messages || !messages->is_array() || messages->empty()) f.refuse("messages", "a list of messages");
  json list = json::array();
  for (std::size_t k = 0; k < messages->size(); ++k)
    list.push_back(message_of((*messages)[k], "messages[" + std::to_string(k) + "]"));
  return text_of(list);
}

}  // namespace

completion_request read_token_request(std::string_view body) {
  const json all = parse_body(body);
  fields f(all);
  completion_request out;
  out.model = f.text("model").value_or("");
  out.is_chat = f.get("messages") != nullptr;
  const auto content = f.text("content"), prompt = f.text("prompt");
  if (out.is_chat + content.has_value() + prompt.has_value() != 1)
    f.refuse("content", "a text in content or in prompt, or messages");
  for (const char* name : {"add_special", "add_special_tokens"})
    out.adds_special = f.flag(name).value_or(out.adds_special);
  if (out.is_chat)
    out.messages_json = read_messages(f);
  else
    out.prompts.emplace_back(content ? *content : *prompt);
  f.end();
  return out;
}

completion_request read_chat_request(std::string_view body) {
  const json all = parse_body(body);
  fields f(all);
  completion_request out;
  out.is_chat = true;
  read_common(out, f);
  out.messages_json = read_messages(f);
  if (const json* const v = f.get("chat_template_kwargs")) {
    fields own(*v, "chat_template_kwargs");
    out.variables_json = text_of(*v);
  }
  if (const auto most = f.whole("max_completion_tokens", 1)) out.max_tokens = most;
  const bool asked = f.flag("logprobs").value_or(false);
  const auto top = f.whole("top_logprobs", 0, 20);
  if (top && !asked) f.refuse("top_logprobs", "no such field without logprobs");
  if (asked) out.logprobs = static_cast<std::size_t>(top.value_or(0));
  read_tools(out, f);
  if (out.tools == tool_use::required || out.tools == tool_use::named) {
    if (!out.guidance_kind.empty()) f.refuse("tool_choice", "no forced call beside " + out.guidance_field);
    out.guidance_field = "tools";
    out.guidance_kind = "json_schema", out.guidance = schema_of_calls(out.tools_json, out.tool_name);
  }
  check_length(out, f);
  f.end();
  return out;
}

std::string schema_of_calls(std::string_view tools_json, std::string_view name) {
  json any = json::array();
  for (const json& tool : json::parse(tools_json)) {
    const json& function = tool.at("function");
    if (!name.empty() && function.at("name") != name) continue;
    const auto parameters = function.find("parameters");
    json arguments = {{"type", "object"}};
    if (parameters != function.end() && parameters->is_object()) arguments = *parameters;
    any.push_back({{"type", "object"},
                   {"properties", {{"name", {{"const", function.at("name")}}}, {"arguments", std::move(arguments)}}},
                   {"required", json::array({"name", "arguments"})},
                   {"additionalProperties", false}});
  }
  return text_of(any.size() == 1 ? any[0] : json{{"anyOf", std::move(any)}});
}

}  // namespace kiln::serve
