#include <fstream>
#include <iterator>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/read/readers.hpp"

namespace kiln::language {

namespace {

constexpr std::string_view names[] = {"tokenizer.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "vocab.json",
                                      "merges.txt",
                                      "vocab.txt",
                                      "tokenizer.model",
                                      "chat_template.jinja",
                                      "chat_template.json"};

std::string list_of_names() { return "tokenizer.json, vocab.json with merges.txt, vocab.txt, or tokenizer.model"; }

}  // namespace

tokenizer tokenizer::load(const std::filesystem::path& folder) {
  std::error_code fault;
  if (!std::filesystem::is_directory(folder, fault))
    raise(errc::not_found, folder.string() + ": expected a folder with " + list_of_names());
  files contents;
  for (const std::string_view name : names) {
    const std::filesystem::path path = folder / name;
    if (!std::filesystem::is_regular_file(path, fault)) continue;
    std::ifstream in(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in.good() && !in.eof()) raise(errc::io, path.string() + ": can't be read");
    contents.emplace(name, std::move(text));
  }
  try {
    return load(contents);
  } catch (const error& e) {
    raise(e.code(), folder.string() + ": " + e.message());
  }
}

namespace detail {

std::shared_ptr<const tokenizer_parts> read_tokenizer(const tokenizer::files& contents) {
  auto parts = std::make_shared<tokenizer_parts>();
  const auto has = [&](std::string_view name) { return contents.find(name) != contents.end(); };
  const auto text = [&](std::string_view name) -> std::string_view { return contents.find(name)->second; };
  const auto with_config = [&](auto&& use) {
    constexpr std::string_view name = "tokenizer_config.json";
    if (!has(name)) return use(static_cast<const json_place*>(nullptr));
    const auto file = parse_json(name, text(name));
    const json_place place(file, std::string(name) + ": ");
    return use(&place);
  };
  bool has_post_processor = false;
  std::optional<named_texts> of_model;
  if (has("tokenizer.json")) {
    const auto file = parse_json("tokenizer.json", text("tokenizer.json"));
    const json_place place(file, "tokenizer.json: ");
    read_tokenizer_json(place, *parts);
    has_post_processor = !parts->prefix.empty() || !parts->suffix.empty();
  } else if (has("vocab.json") && has("merges.txt")) {
    const auto file = parse_json("vocab.json", text("vocab.json"));
    read_vocab_and_merges(json_place(file, "vocab.json: "), text("merges.txt"), *parts);
  } else if (has("vocab.txt")) {
    const bool lowercase = with_config(
        [](const json_place* config) { return config == nullptr || config->flag_or("do_lower_case", true); });
    read_vocab_txt(text("vocab.txt"), lowercase, *parts);
  } else if (has("tokenizer.model")) {
    of_model = with_config(
        [&](const json_place* config) { return read_sentencepiece(text("tokenizer.model"), config, *parts); });
  } else {
    raise(errc::not_found, "expected " + list_of_names() + ", found none of them");
  }
  read_companions(contents, has_post_processor, of_model ? &*of_model : nullptr, *parts);
  parts->finish();
  return parts;
}

}  // namespace detail

}  // namespace kiln::language
