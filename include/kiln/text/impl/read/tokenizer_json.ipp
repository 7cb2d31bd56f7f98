#include <algorithm>
#include <limits>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/model/bpe.hpp"
#include "kiln/text/impl/model/unigram.hpp"
#include "kiln/text/impl/model/word_piece.hpp"
#include "kiln/text/impl/read/readers.hpp"

namespace kiln::language::detail {

namespace {

constexpr std::int64_t highest_token = std::numeric_limits<token>::max() - 1;

// Steps of a kind in a step and the sequences in it.
int count_steps(const nlohmann::json& step, std::string_view type, std::string_view members, int depth = 0) {
  if (!step.is_object() || depth > deepest_sequence) return 0;
  int n = step.contains("type") && step["type"] == type ? 1 : 0;
  if (const auto list = step.find(members); list != step.end() && list->is_array())
    for (const auto& one : *list) n += count_steps(one, type, members, depth + 1);
  return n;
}

// Whether the last step writes bytes in GPT-2's alphabet: then nothing looks at them there.
bool ends_with(const nlohmann::json& step, std::string_view type, int depth = 0) {
  if (!step.is_object() || depth > deepest_sequence) return false;
  if (const auto list = step.find("pretokenizers"); list != step.end() && list->is_array())
    return !list->empty() && ends_with(list->back(), type, depth + 1);
  return step.contains("type") && step["type"] == type;
}

void read_vocab(const json_place& vocab, vocabulary& words) {
  if (!vocab.value().is_object()) vocab.fail("an object of spellings and numbers");
  words.reserve(vocab.value().size());
  std::vector<std::pair<token, const std::string*>> in_order;
  in_order.reserve(vocab.value().size());
  for (const auto& [spelling, id] : vocab.value().items()) {
    if (!id.is_number_integer()) json_place(id, vocab.place() + "." + spelling).fail("an integer");
    in_order.emplace_back(static_cast<token>(json_place(id, vocab.place()).number(0, highest_token)), &spelling);
  }
  std::sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : *a.second < *b.second;
  });
  for (const auto& [id, spelling] : in_order) words.put(*spelling, id);
}

token optional_token(const vocabulary& words, const std::optional<std::string>& spelling) {
  return spelling ? words.find(*spelling) : -1;
}

void read_bpe(const json_place& file, bool raw_bytes, tokenizer_parts& parts) {
  read_vocab(file.at("vocab"), parts.words);
  bpe::settings s;
  s.raw_bytes = raw_bytes;
  s.byte_fallback = file.flag_or("byte_fallback", false);
  s.fuse_unknown = file.flag_or("fuse_unk", false);
  s.ignore_merges = file.flag_or("ignore_merges", false);
  s.unknown = file.optional_text("unk_token");
  s.continuing_prefix = file.optional_text("continuing_subword_prefix");
  s.end_suffix = file.optional_text("end_of_word_suffix");
  // an empty one marks nothing
  if (s.continuing_prefix && s.continuing_prefix->empty()) s.continuing_prefix.reset();
  if (s.end_suffix && s.end_suffix->empty()) s.end_suffix.reset();
  const json_place list = file.at("merges");
  std::vector<bpe::rule> merges(list.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto& one = list.value()[i];
    const auto rank = static_cast<std::uint32_t>(i);
    if (one.is_array() && one.size() == 2 && one[0].is_string() && one[1].is_string()) {
      merges[i] = {one[0].get_ref<const std::string&>(), one[1].get_ref<const std::string&>(), rank};
      continue;
    }
    if (!one.is_string()) list.at(i).fail("two spellings");
    const std::string_view both = one.get_ref<const std::string&>();
    const std::size_t space = both.find(' ');
    if (space == std::string_view::npos) list.at(i).fail("two spellings with a space between them");
    merges[i] = {both.substr(0, space), both.substr(space + 1), rank};
  }
  try {
    parts.model = std::make_unique<bpe>(parts.words, std::move(s), merges);
  } catch (const error& e) {
    raise(e.code(), file.place() + ": " + e.message());
  }
}

void read_unigram(const json_place& file, tokenizer_parts& parts) {
  const json_place list = file.at("vocab");
  std::vector<unigram::scored> all;
  double lowest = std::numeric_limits<double>::infinity();
  parts.words.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto& one = list.value()[i];
    if (!one.is_array() || one.size() != 2 || !one[0].is_string() || !one[1].is_number())
      list.at(i).fail("a spelling and its score");
    const auto id = static_cast<token>(i);
    parts.words.put(one[0].get_ref<const std::string&>(), id);
    lowest = std::min(lowest, one[1].get<double>());
    if (parts.words.contains(id)) all.push_back({id, one[1].get<double>()});
  }
  unigram::settings s;
  if (const auto unknown = file.find("unk_id")) {
    s.unknown = static_cast<token>(unknown->number(0, highest_token));
    if (!parts.words.contains(s.unknown)) unknown->fail("a token of the vocabulary");
  }
  s.byte_fallback = file.flag_or("byte_fallback", false);
  constexpr double unknown_penalty = 10;  // as SentencePiece has it
  s.unknown_score = lowest - unknown_penalty;
  parts.model = std::make_unique<unigram>(parts.words, s, all);
}

}  // namespace

added_token read_added_token(const json_place& entry, token id) {
  added_token t;
  t.content = entry.at("content").text();
  t.id = id;
  t.special = entry.flag_or("special", false);
  t.single_word = entry.flag_or("single_word", false);
  t.lstrip = entry.flag_or("lstrip", false);
  t.rstrip = entry.flag_or("rstrip", false);
  t.normalized = entry.flag_or("normalized", !t.special);
  return t;
}

void read_model(const json_place& file, bool raw_bytes, tokenizer_parts& parts) {
  std::string type = file.text_or("type", "");
  // files of before `type` was written
  if (type.empty()) type = file.find("merges") ? "BPE" : file.at("vocab").value().is_array() ? "Unigram" : "WordPiece";
  if (type == "BPE") return read_bpe(file, raw_bytes, parts);
  if (type == "Unigram") return read_unigram(file, parts);
  if (type != "WordPiece" && type != "WordLevel") file.at("type").fail("BPE, Unigram, WordPiece or WordLevel");
  read_vocab(file.at("vocab"), parts.words);
  const token unknown = optional_token(parts.words, file.optional_text("unk_token"));
  if (type == "WordLevel") {
    parts.model = make_word_level(parts.words, unknown);
    return;
  }
  const auto most = file.find("max_input_chars_per_word");
  parts.model = make_word_piece(parts.words, unknown, file.text_or("continuing_subword_prefix", "##"),
                                most ? static_cast<std::size_t>(most->number(0, 1 << 30)) : 100);
}

void read_tokenizer_json(const json_place& file, tokenizer_parts& parts) {
  const json_place model = file.at("model");
  const auto normal = file.find("normalizer");
  const auto splits = file.find("pre_tokenizer");
  const int mapped = (normal ? count_steps(normal->value(), "ByteLevel", "normalizers") : 0);
  const int split_mapped = (splits ? count_steps(splits->value(), "ByteLevel", "pretokenizers") : 0);
  const bool is_bpe = model.text_or("type", model.find("merges") ? "BPE" : "") == "BPE";
  // BPE takes bytes as they are where the alphabet is written once: nothing else can reach it then
  const bool raw_bytes = is_bpe && mapped + split_mapped == 1 && !model.flag_or("byte_fallback", false);
  const bool last = raw_bytes && mapped == 0 && ends_with(splits->value(), "ByteLevel");
  parts.unmaps_bytes = raw_bytes && !last;
  if (normal) read_normalizer(*normal, parts.normalizers);
  if (splits) read_pre_tokenizer(*splits, last, parts.splitters);
  read_model(model, raw_bytes, parts);
  bool fused = false;
  if (const auto decoder = file.find("decoder"))
    read_decoder(*decoder, parts.decoders, fused);
  else
    parts.decoders.push_back(make_join_step());
  if (const auto processor = file.find("post_processor")) read_post_processor(*processor, parts.prefix, parts.suffix);
  if (const auto added = file.find("added_tokens"))
    for (std::size_t i = 0; i < added->size(); ++i) {
      const json_place entry = added->at(i);
      const token id = static_cast<token>(entry.at("id").number(0, highest_token));
      // the model's number counts where it has the spelling
      const token own = parts.words.find(entry.at("content").text());
      parts.added.put(read_added_token(entry, own >= 0 ? own : id));
    }
}

}  // namespace kiln::language::detail
