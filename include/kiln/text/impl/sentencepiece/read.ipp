#include <algorithm>
#include <cfloat>
#include <numeric>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/model/bpe.hpp"
#include "kiln/text/impl/model/byte_tokens.hpp"
#include "kiln/text/impl/model/unigram.hpp"
#include "kiln/text/impl/read/readers.hpp"
#include "kiln/text/impl/sentencepiece/parts.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::detail {

namespace {

using piece_type = sentencepiece_file::piece_type;
using model_type = sentencepiece_file::model_type;

// The pieces as tokens: the unknown one's number.
token read_pieces(const sentencepiece_file& file, tokenizer_parts& parts, defined_symbols& symbols) {
  token unknown = -1;
  parts.words.reserve(file.pieces.size());
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    const auto& one = file.pieces[i];
    const auto id = static_cast<token>(i);
    const auto fail = [&](const std::string& what) {
      raise(errc::malformed, "pieces[" + std::to_string(i) + "], \"" + std::string(one.text) + "\": " + what);
    };
    if (!parts.words.put(one.text, id))
      fail("expected a text of its own, found that of piece " + std::to_string(parts.words.find(one.text)));
    switch (one.type) {
      case piece_type::unknown:
        if (unknown >= 0) fail("expected one unknown piece, found a second");
        unknown = id;
        break;
      case piece_type::byte:
        if (!file.trainer.byte_fallback) fail("expected no byte without byte_fallback");
        if (byte_of_spelling(one.text) < 0) fail("expected a byte such as <0x0A>");
        break;
      case piece_type::user_defined: symbols.emplace_back(one.text, id); break;
      case piece_type::control: {
        added_token t;
        t.content = one.text;
        t.id = id;
        t.special = true;
        t.in_text = false;
        parts.added.put(std::move(t));
        break;
      }
      default: break;
    }
  }
  if (unknown < 0) raise(errc::malformed, "pieces: expected one of type unknown, found none");
  std::array<token, 256> bytes{};
  if (file.trainer.byte_fallback && !find_byte_tokens(parts.words, bytes))
    raise(errc::malformed, "pieces: expected <0x00> to <0xFF> for byte_fallback, found some of them missing");
  return unknown;
}

std::unique_ptr<model> make_unigram(const sentencepiece_file& file, const vocabulary& words, token unknown) {
  float lowest = FLT_MAX, highest = FLT_MIN;
  for (const auto& one : file.pieces)
    if (one.type == piece_type::normal) lowest = std::min(lowest, one.score), highest = std::max(highest, one.score);
  std::vector<unigram::scored> all;
  all.reserve(file.pieces.size());
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    const auto& one = file.pieces[i];
    const auto id = static_cast<token>(i);
    // a user's symbol wins over what it consists of
    if (one.type == piece_type::user_defined)
      all.push_back({id, static_cast<float>(one.text.size()) * highest - 0.1});
    else if (one.type == piece_type::normal)
      all.push_back({id, one.score});
  }
  unigram::settings s;
  s.unknown = unknown;
  s.byte_fallback = file.trainer.byte_fallback;
  s.as_sentencepiece = true;
  constexpr float unknown_penalty = 10;
  s.unknown_score = lowest - unknown_penalty;
  return std::make_unique<unigram>(words, s, all);
}

// Each way in which a piece consists of two symbols is a merge: SentencePiece joins any two whose text is a piece's,
// the one of the greatest score first.
std::vector<bpe::rule> merges_of(const sentencepiece_file& file, const vocabulary& words) {
  const auto joins = [&](std::size_t i) {
    return file.pieces[i].type == piece_type::normal || file.pieces[i].type == piece_type::unused;
  };
  const auto is_symbol = [&](std::string_view text) {
    const token id = words.find(text);
    return id >= 0 && (joins(static_cast<std::size_t>(id)) || text.size() == character_bytes(text[0])) &&
           file.pieces[static_cast<std::size_t>(id)].type != piece_type::user_defined;
  };
  std::vector<std::size_t> order(file.pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return !joins(i); });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return file.pieces[a].score > file.pieces[b].score; });
  std::vector<bpe::rule> out;
  std::uint32_t rank = 0;
  for (std::size_t n = 0; n < order.size(); ++n) {
    const auto& one = file.pieces[order[n]];
    if (n > 0 && one.score != file.pieces[order[n - 1]].score) ++rank;
    for (std::size_t cut = character_bytes(one.text[0]); cut < one.text.size(); cut += character_bytes(one.text[cut]))
      if (is_symbol(one.text.substr(0, cut)) && is_symbol(one.text.substr(cut)))
        out.push_back({one.text.substr(0, cut), one.text.substr(cut), rank});
  }
  return out;
}

std::unique_ptr<model> make_bpe(const sentencepiece_file& file, const vocabulary& words, token unknown) {
  bpe::settings s;
  s.byte_fallback = file.trainer.byte_fallback;
  s.fuse_unknown = true;
  s.unknown = words[unknown];
  for (std::size_t i = 0; i < file.pieces.size(); ++i)
    if (file.pieces[i].type == piece_type::unused) {
      s.unused.resize(file.pieces.size());
      s.unused[i] = true;
    }
  return std::make_unique<bpe>(words, std::move(s), merges_of(file, words));
}

std::unique_ptr<model> make_model(const sentencepiece_file& file, const vocabulary& words, token unknown,
                                  const defined_symbols& symbols) {
  if (file.trainer.model == model_type::unigram) return make_unigram(file, words, unknown);
  std::unique_ptr<model> out;
  if (file.trainer.model == model_type::bpe) {
    out = make_bpe(file, words, unknown);
  } else {
    std::array<token, 256> bytes{};
    const bool fallback = file.trainer.byte_fallback && find_byte_tokens(words, bytes);
    out = make_unit_model(words, file.trainer.model == model_type::word, unknown, fallback ? &bytes : nullptr);
  }
  // words know of no symbols
  if (symbols.empty() || file.trainer.model == model_type::word) return out;
  return make_symbol_finder(symbols, std::move(out));
}

void make_decoders(const sentencepiece_file& file, std::string_view unknown, decode_steps& out) {
  const auto& normal = file.normalizer;
  out.push_back(
      make_lone_step([unknown = std::string(unknown), surface = std::string(file.trainer.unk_surface)](decoded& next) {
        if (next.text == unknown) next.text = surface;
      }));
  out.push_back(make_replace_step(regex(metaspace_mark), std::string(metaspace_mark), " ", false));
  if (file.trainer.byte_fallback) out.push_back(make_byte_fallback_step());
  if (normal.add_dummy_prefix || normal.remove_extra_whitespaces)
    out.push_back(make_first_space_step(normal.remove_extra_whitespaces, std::string(file.trainer.unk_surface)));
  out.push_back(make_characters_step());
}

named_texts read_whole(std::string_view bytes, bool only_at_start, tokenizer_parts& parts) {
  const sentencepiece_file file = read_sentencepiece_file(bytes);
  defined_symbols symbols;
  const token unknown = read_pieces(file, parts, symbols);
  parts.splitters.push_back(
      make_sentencepiece_rewrite(file.normalizer, file.trainer.whitespace_as_suffix, only_at_start, symbols));
  parts.model = make_model(file, parts.words, unknown, symbols);
  make_decoders(file, parts.words[unknown], parts.decoders);

  named_texts roles;
  roles.emplace("unk_token", parts.words[unknown]);
  const std::pair<std::string_view, std::string_view> controls[] = {
      {"bos_token", file.trainer.bos}, {"eos_token", file.trainer.eos}, {"pad_token", file.trainer.pad}};
  for (const auto& [role, spelling] : controls)
    if (const added_token* t = parts.added.find(spelling); t != nullptr) roles.emplace(role, spelling);
  return roles;
}

}  // namespace

named_texts read_sentencepiece(std::string_view bytes, const json_place* config, tokenizer_parts& parts) {
  // transformers' `legacy` false: what follows a special token has no space in front
  const bool only_at_start = config != nullptr && !config->flag_or("legacy", true);
  try {
    return read_whole(bytes, only_at_start, parts);
  } catch (const error& e) {
    raise(e.code(), "tokenizer.model: " + e.message());
  }
}

}  // namespace kiln::language::detail
