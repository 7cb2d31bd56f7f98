#include <cstring>
#include <nlohmann/json.hpp>

#include "kiln/core/error.hpp"
#include "kiln/generate/weights/model_files.hpp"

namespace kiln::language {

namespace {

using nlohmann::json;

// What GGUF says of a token, in SentencePiece's numbers.
enum token_type : std::int64_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct ggml_vocabulary {
  explicit ggml_vocabulary(const gguf_file& f)
      : file(f), texts(f.texts("tokenizer.ggml.tokens")), types(f.numbers("tokenizer.ggml.token_type")) {
    if (texts.empty()) refuse("tokens", "expected a list of texts, found none");
    if (!types.empty() && types.size() != texts.size())
      refuse("token_type",
             "expected " + std::to_string(texts.size()) + " numbers, found " + std::to_string(types.size()));
    for (const double t : types)
      if (!(t >= 1 && t <= 6)) refuse("token_type", "expected 1 to 6, found " + std::to_string(t));
  }
  std::int64_t type(std::size_t k) const { return types.empty() ? normal : static_cast<std::int64_t>(types[k]); }
  [[noreturn]] void refuse(const char* key, const std::string& what, errc code = errc::malformed) const {
    throw error(code, file.name() + ": 'tokenizer.ggml." + key + "': " + what);
  }
  // The text of a token with a role; empty where there is none.
  std::string_view role(const char* key) const {
    const auto id = file.integer(std::string("tokenizer.ggml.") + key);
    if (!id) return {};
    if (*id < 0 || static_cast<std::size_t>(*id) >= texts.size())
      refuse(key, "expected a token below " + std::to_string(texts.size()) + ", found " + std::to_string(*id));
    return texts[static_cast<std::size_t>(*id)];
  }
  const gguf_file& file;
  const std::vector<std::string_view>& texts;
  const std::vector<double>& types;
};

// A protobuf message that is written field by field.
class message {
 public:
  void number(std::uint32_t field, std::uint64_t n) { key(field, 0), varint(n); }
  void real(std::uint32_t field, float x) {
    key(field, 5);
    char bytes[4];
    std::memcpy(bytes, &x, sizeof bytes);
    out_.append(bytes, sizeof bytes);
  }
  void text(std::uint32_t field, std::string_view t) { key(field, 2), varint(t.size()), out_ += t; }
  std::string& bytes() { return out_; }

 private:
  void key(std::uint32_t field, std::uint32_t kind) { varint(field << 3 | kind); }
  void varint(std::uint64_t v) {
    for (; v > 127; v >>= 7) out_.push_back(static_cast<char>((v & 127) | 128));
    out_.push_back(static_cast<char>(v));
  }
  std::string out_;
};

// SentencePiece's model of byte pairs (sentencepiece_model.proto).
std::string sentencepiece_of(const ggml_vocabulary& v) {
  const auto& scores = v.file.numbers("tokenizer.ggml.scores");
  if (scores.size() != v.texts.size())
    v.refuse("scores",
             "expected " + std::to_string(v.texts.size()) + " numbers, found " + std::to_string(scores.size()));
  message out, trainer, normalizer;
  bool has_bytes = false;
  std::string_view unknown_text = v.role("unknown_token_id");
  for (std::size_t k = 0; k < v.texts.size(); ++k) {
    message piece;
    piece.text(1, v.texts[k]);
    piece.real(2, static_cast<float>(scores[k]));
    // files of before `unknown_token_id` mark it by its type alone
    if (v.type(k) == unknown && unknown_text.empty()) unknown_text = v.texts[k];
    const bool is_unknown = !unknown_text.empty() && v.texts[k] == unknown_text;
    piece.number(3, static_cast<std::uint64_t>(is_unknown ? unknown : v.type(k) == unknown ? control : v.type(k)));
    has_bytes = has_bytes || v.type(k) == byte;
    out.text(1, piece.bytes());
  }
  trainer.number(3, 2);
  if (has_bytes) trainer.number(35, 1);
  for (const auto& [field, key] :
       {std::pair(45U, "unknown_token_id"), {46U, "bos_token_id"}, {47U, "eos_token_id"}, {48U, "padding_token_id"}})
    if (const auto text = v.role(key); !text.empty()) trainer.text(field, text);
  normalizer.number(3, v.file.integer("tokenizer.ggml.add_space_prefix").value_or(1) != 0);
  normalizer.number(4, v.file.integer("tokenizer.ggml.remove_extra_whitespaces").value_or(0) != 0);
  normalizer.number(5, 1);
  out.text(2, trainer.bytes());
  out.text(3, normalizer.bytes());
  return std::move(out.bytes());
}

// How texts are split before byte pairs are joined, by the file's name for it.
struct pre_tokenizer {
  std::string_view name, pattern;  // no pattern: GPT-2's
  bool splits_digits = false, takes_whole_words = false, composes = false;
  bool begins = false;  // with the token of a text's begin, where the file says nothing
};
constexpr std::string_view english_endings = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|";
constexpr pre_tokenizer pre_tokenizers[] = {
    {"", ""},
    {"default", ""},
    {"gpt-2", ""},
    {"phi-2", ""},
    {"jina-en", ""},
    {"smollm", "", true},
    {"starcoder", "", true},
    {"refact", "", true},
    {"codeshell", "", true},
    {"llama-bpe", R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", false,
     true, false, true},
    {"llama3", R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", false, true,
     false, true},
    {"llama-v3", R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", false,
     true, false, true},
    {"qwen2", R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", false, false,
     true},
};

json split_steps(const pre_tokenizer& p) {
  json steps = json::array();
  if (p.splits_digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (!p.pattern.empty())
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", std::string(english_endings) + std::string(p.pattern)}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  steps.push_back(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", p.pattern.empty()}});
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

const pre_tokenizer& pre_tokenizer_of(const ggml_vocabulary& v) {
  const std::string_view name = v.file.text("tokenizer.ggml.pre").value_or("");
  const pre_tokenizer* found = nullptr;
  std::string known;
  for (const pre_tokenizer& p : pre_tokenizers) {
    if (p.name == name) found = &p;
    if (!p.name.empty()) known += (known.empty() ? "" : ", ") + std::string(p.name);
  }
  if (!found) v.refuse("pre", "expected one of " + known + ", found '" + std::string(name) + "'", errc::unsupported);
  return *found;
}

std::string tokenizer_json_of(const ggml_vocabulary& v, const pre_tokenizer& pre) {
  json words = json::object(), added = json::array(), merges = json::array();
  for (std::size_t k = 0; k < v.texts.size(); ++k) {
    const std::string text(v.texts[k]);
    if (!words.emplace(text, k).second) v.refuse("tokens", "expected each text once, found '" + text + "' twice");
    if (v.type(k) == control || v.type(k) == user_defined)
      added.push_back({{"id", k}, {"content", text}, {"special", v.type(k) == control}, {"normalized", false}});
  }
  for (const std::string_view m : v.file.texts("tokenizer.ggml.merges")) merges.push_back(std::string(m));
  const json file = {{"added_tokens", std::move(added)},
                     {"normalizer", pre.composes ? json{{"type", "NFC"}} : json()},
                     {"pre_tokenizer", split_steps(pre)},
                     {"decoder", {{"type", "ByteLevel"}}},
                     {"model",
                      {{"type", "BPE"},
                       {"ignore_merges", pre.takes_whole_words},
                       {"vocab", std::move(words)},
                       {"merges", std::move(merges)}}}};
  try {
    return file.dump();
  } catch (const json::exception& e) {
    v.refuse("tokens", std::string("expected texts in UTF-8, found others: ") + e.what());
  }
}

std::string tokenizer_config_of(const ggml_vocabulary& v, bool by_default_begins) {
  json out = json::object();
  for (const auto& [as, key] : {std::pair("bos_token", "bos_token_id"),
                                {"eos_token", "eos_token_id"},
                                {"unk_token", "unknown_token_id"},
                                {"pad_token", "padding_token_id"}})
    if (const auto text = v.role(key); !text.empty()) out[as] = std::string(text);
  out["add_bos_token"] = v.file.integer("tokenizer.ggml.add_bos_token").value_or(by_default_begins) != 0;
  out["add_eos_token"] = v.file.integer("tokenizer.ggml.add_eos_token").value_or(0) != 0;
  json& added = out["added_tokens_decoder"] = json::object();
  for (std::size_t k = 0; k < v.texts.size(); ++k)
    if (v.type(k) == control)
      added[std::to_string(k)] = {{"content", std::string(v.texts[k])}, {"special", true}, {"normalized", false}};
  json templates = json::array();
  constexpr std::string_view prefix = "tokenizer.chat_template";
  for (auto at = v.file.metadata().lower_bound(prefix); at != v.file.metadata().end() && at->first.starts_with(prefix);
       ++at) {
    const std::string name =
        at->first == prefix ? "default" : at->first.substr(std::min(prefix.size() + 1, at->first.size()));
    if (at->second.is == gguf_value::kind::text)
      templates.push_back({{"name", name}, {"template", std::string(at->second.text)}});
  }
  if (!templates.empty()) out["chat_template"] = std::move(templates);
  try {
    return out.dump();
  } catch (const json::exception& e) {
    v.refuse("chat_template", std::string("expected texts in UTF-8, found others: ") + e.what());
  }
}

}  // namespace

tokenizer::files tokenizer_files(const gguf_file& file) {
  const std::string model(file.text("tokenizer.ggml.model").value_or(""));
  if (model.empty() || model == "none" || model == "no_vocab")
    throw error(errc::not_found, file.name() + ": 'tokenizer.ggml.model': expected llama or gpt2, found none");
  const ggml_vocabulary v(file);
  tokenizer::files out;
  bool begins = true;
  if (model == "llama") {
    out.emplace("tokenizer.model", sentencepiece_of(v));
  } else if (model == "gpt2") {
    const pre_tokenizer& pre = pre_tokenizer_of(v);
    out.emplace("tokenizer.json", tokenizer_json_of(v, pre));
    begins = pre.begins;
  } else {
    v.refuse("model", "expected llama or gpt2, found '" + model + "'", errc::unsupported);
  }
  out.emplace("tokenizer_config.json", tokenizer_config_of(v, begins));
  return out;
}

}  // namespace kiln::language
