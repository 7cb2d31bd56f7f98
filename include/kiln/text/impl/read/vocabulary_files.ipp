#include <algorithm>

#include "kiln/text/impl/model/word_piece.hpp"
#include "kiln/text/impl/normalize/normalizers.hpp"
#include "kiln/text/impl/read/readers.hpp"
#include "kiln/text/impl/split/splitters.hpp"

namespace kiln::language::detail {

namespace {

// Lines without their ends.
template <class F> void each_line(std::string_view text, F&& each) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    each(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

void read_vocab_and_merges(const json_place& vocab, std::string_view merges, tokenizer_parts& parts) {
  nlohmann::json file;
  file["type"] = "BPE";
  file["vocab"] = vocab.value();
  auto& list = file["merges"] = nlohmann::json::array();
  each_line(merges, [&](std::string_view line) {
    if (line.empty() || line.starts_with("#version")) return;
    list.push_back(std::string(line));
  });
  read_model(json_place(file, "vocab.json and merges.txt: "), true, parts);
  parts.splitters.push_back(make_byte_level(false, true, false));
  parts.decoders.push_back(make_byte_characters_step());
  parts.decoders.push_back(make_characters_step());
  if (const token end = parts.words.find("<|endoftext|>"); end >= 0) {
    added_token t;
    t.content = "<|endoftext|>";
    t.id = end;
    t.special = true;
    parts.added.put(std::move(t));
  }
}

void read_vocab_txt(std::string_view lines, bool lowercase, tokenizer_parts& parts) {
  token next = 0;
  each_line(lines, [&](std::string_view line) { parts.words.put(line, next++); });
  bert_normalization what;
  what.lowercase = what.strip_accents = lowercase;
  parts.normalizers.push_back(make_bert_normalizer(what));
  parts.splitters.push_back(make_bert_splitter());
  constexpr std::size_t most_characters = 100;
  parts.model = make_word_piece(parts.words, parts.words.find("[UNK]"), "##", most_characters);
  parts.decoders.push_back(make_word_piece_step("##", true, false));
  for (const std::string_view special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    const token id = parts.words.find(special);
    if (id < 0) continue;
    added_token t;
    t.content = special;
    t.id = id;
    t.special = true;
    parts.added.put(std::move(t));
    if (special == "[CLS]") parts.prefix.push_back(id);
    if (special == "[SEP]") parts.suffix.push_back(id);
  }
}

}  // namespace kiln::language::detail
