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

// What a class puts around texts unless its files say otherwise.
struct class_defaults {
  std::string_view name;
  bool bos = false, eos = false;
};
constexpr class_defaults classes[] = {
    {"Llama", true, false},     {"CodeLlama", true, false}, {"Gemma", true, false},
    {"InternLM2", true, false}, {"Baichuan", false, false}, {"T5", false, true},
    {"Marian", false, true},    {"CLIP", true, true},       {"XLMRoberta", true, true}};

class_defaults defaults_of(std::string name) {
  for (const std::string_view ending : {"Fast", "Tokenizer"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  for (const class_defaults& one : classes)
    if (one.name == name) return one;
  return {};
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
    around.bos = file.flag_or("add_bos_token", around.bos);
    around.eos = file.flag_or("add_eos_token", around.eos);
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
    const auto text = parts.template_variables.find(name);
    if (text == parts.template_variables.end()) return std::nullopt;
    const token id = parts.find(text->second);
    return id < 0 ? std::nullopt : std::optional(id);
  };
  parts.special.bos = role("bos_token");
  parts.special.pad = role("pad_token");
  parts.special.unk = role("unk_token");
  if (const auto eos = role("eos_token")) parts.special.eos = {*eos};
  if (has_post_processor || !parts.prefix.empty() || !parts.suffix.empty()) return;
  if (around.bos && parts.special.bos) parts.prefix.push_back(*parts.special.bos);
  if (around.eos && !parts.special.eos.empty()) parts.suffix.push_back(parts.special.eos.front());
}

}  // namespace kiln::language::detail
