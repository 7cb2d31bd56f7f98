#include <algorithm>
#include <array>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/read/readers.hpp"

namespace kiln::language::detail {

namespace {

constexpr std::string_view roles[] = {"bos_token", "eos_token", "unk_token", "pad_token",
                                      "sep_token", "cls_token", "mask_token"};

// A special token is its text, or an object with it.
std::optional<std::string> spelling_of(const json_place& place) {
  if (place.value().is_string()) return place.text();
  if (place.value().is_object()) return place.at("content").text();
  place.fail("a token's text or an object with \"content\"");
}

void read_roles(const json_place& file, named_texts& out) {
  for (const std::string_view role : roles) {
    const auto found = file.find(role);
    if (!found || out.contains(role) || found->value().is_array() || found->value().is_boolean()) continue;
    if (auto text = spelling_of(*found)) out.emplace(role, *std::move(text));
  }
}

void read_templates(const json_place& place, named_texts& out) {
  if (place.value().is_string()) {
    out.emplace("default", place.text());
    return;
  }
  for (std::size_t i = 0; i < place.size(); ++i)
    out.emplace(place.at(i).at("name").text(), place.at(i).at("template").text());
}

token number_of(std::string_view digits, const json_place& place) {
  constexpr std::size_t most_digits = 9;
  if (digits.empty() || digits.size() > most_digits || digits.find_first_not_of("0123456789") != std::string_view::npos)
    place.fail("tokens by their numbers");
  return static_cast<token>(std::stol(std::string(digits)));
}

// What a class puts around texts unless its files say otherwise: roles, or tokens by their spellings.
struct class_defaults {
  std::string_view name;
  std::array<std::string_view, 2> before, after;
};
constexpr class_defaults classes[] = {{"Llama", {"bos_token"}, {}},
                                      {"CodeLlama", {"bos_token"}, {}},
                                      {"Gemma", {"bos_token"}, {}},
                                      {"InternLM2", {"bos_token"}, {}},
                                      {"T5", {}, {"eos_token"}},
                                      {"Marian", {}, {"eos_token"}},
                                      {"CLIP", {"bos_token"}, {"eos_token"}},
                                      {"XLMRoberta", {"cls_token"}, {"sep_token"}},
                                      {"DebertaV2", {"cls_token"}, {"sep_token"}},
                                      {"Whisper", {"<|startoftranscript|>", "<|notimestamps|>"}, {"eos_token"}},
                                      {"ChatGLM", {"[gMASK]", "sop"}, {}},
                                      {"ChatGLM4", {"[gMASK]", "<sop>"}, {}}};

class_defaults defaults_of(std::string name) {
  for (const std::string_view ending : {"Fast", "Tokenizer"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  for (const class_defaults& one : classes)
    if (one.name == name) return one;
  return {};
}

// `add_bos_token` and its like, where they are given.
void apply_flag(const json_place& file, std::string_view key, std::string_view role,
                std::array<std::string_view, 2>& list) {
  if (!file.find(key)) return;
  const bool wanted = file.flag_or(key, false), there = list[0] == role;
  if (wanted && list[0].empty()) list[0] = role;
  if (!wanted && there) list[0] = {};
}

// The token of a role or with a spelling; -1 where the files have none.
token token_of(std::string_view role_or_spelling, const tokenizer_parts& parts) {
  if (role_or_spelling.empty()) return -1;
  const auto find = [&](std::string_view role) { return parts.template_variables.find(role); };
  auto text = find(role_or_spelling);
  const auto none = parts.template_variables.end();
  if (text == none && role_or_spelling == "cls_token") text = find("bos_token");
  if (text == none && role_or_spelling == "sep_token") text = find("eos_token");
  if (text != none) return parts.find(text->second);
  return std::count(std::begin(roles), std::end(roles), role_or_spelling) != 0 ? -1 : parts.find(role_or_spelling);
}

}  // namespace

void read_companions(const tokenizer::files& contents, bool has_post_processor, const named_texts* of_model,
                     tokenizer_parts& parts) {
  const auto put_new = [&](const added_token& t) {
    const added_token* same = parts.added.find(t.content);
    const added_token* numbered = parts.added.find(t.id);
    if ((same == nullptr || !same->in_text) && (numbered == nullptr || !numbered->in_text)) parts.added.put(t);
  };
  const auto with_json = [&](std::string_view name, auto&& use) {
    const auto found = contents.find(name);
    if (found == contents.end()) return;
    const auto file = parse_json(name, found->second);
    use(json_place(file, std::string(name) + ": "));
  };
  class_defaults around;
  with_json("tokenizer_config.json", [&](const json_place& file) {
    read_roles(file, parts.template_variables);
    if (const auto found = file.find("chat_template")) read_templates(*found, parts.chat_templates);
    if (const auto found = file.find("added_tokens_decoder")) {
      if (!found->value().is_object()) found->fail("an object of tokens");
      for (const auto& [key, entry] : found->value().items()) {
        const json_place place(entry, found->place() + "." + key);
        put_new(read_added_token(place, number_of(key, place)));
      }
    }
    around = defaults_of(file.text_or("tokenizer_class", ""));
    apply_flag(file, "add_bos_token", "bos_token", around.before);
    apply_flag(file, "add_eos_token", "eos_token", around.after);
  });
  with_json("special_tokens_map.json", [&](const json_place& file) { read_roles(file, parts.template_variables); });
  with_json("added_tokens.json", [&](const json_place& file) {
    if (!file.value().is_object()) file.fail("an object of spellings and numbers");
    for (const auto& [spelling, id] : file.value().items()) {
      added_token t;
      t.content = spelling;
      t.id = static_cast<token>(json_place(id, file.place() + spelling).number(0, 1 << 30));
      t.normalized = true;
      put_new(t);
    }
  });
  if (parts.chat_templates.empty())
    if (const auto found = contents.find("chat_template.jinja"); found != contents.end())
      parts.chat_templates.emplace("default", found->second);
  if (parts.chat_templates.empty())
    with_json("chat_template.json",
              [&](const json_place& file) { read_templates(file.at("chat_template"), parts.chat_templates); });

  if (of_model != nullptr) {
    for (const auto& [name, spelling] : parts.template_variables) {
      added_token t;
      t.content = spelling;
      t.id = parts.find(spelling);
      if (t.id < 0) continue;
      if (const added_token* known = parts.added.find(t.id); known != nullptr && known->in_text) t = *known;
      t.special = true;
      parts.added.put(std::move(t));
    }
    parts.template_variables.insert(of_model->begin(), of_model->end());
  }

  const auto role = [&](std::string_view name) -> std::optional<token> {
    const token id = token_of(name, parts);
    return id < 0 ? std::nullopt : std::optional(id);
  };
  parts.special.bos = role("bos_token");
  parts.special.pad = role("pad_token");
  parts.special.unk = role("unk_token");
  if (const auto eos = role("eos_token")) parts.special.eos = {*eos};
  if (has_post_processor || !parts.prefix.empty() || !parts.suffix.empty()) return;
  for (const std::string_view one : around.before)
    if (const auto id = role(one)) parts.prefix.push_back(*id);
  for (const std::string_view one : around.after)
    if (const auto id = role(one)) parts.suffix.push_back(*id);
}

}  // namespace kiln::language::detail
