#include "kiln/core/error.hpp"
#include "kiln/text/impl/characters.hpp"
#include "kiln/text/impl/normalize/normalizers.hpp"
#include "kiln/text/impl/read/base64.hpp"
#include "kiln/text/impl/read/readers.hpp"
#include "kiln/text/impl/split/splitters.hpp"

namespace kiln::language::detail {

namespace {

// The members of a step that is a sequence of steps; false where it is none.
template <class F> bool read_sequence(const json_place& step, std::string_view key, int depth, F&& each) {
  if (depth > deepest_sequence) step.fail("at most 16 sequences within each other");
  if (step.at("type").text() != "Sequence") return false;
  const json_place list = step.at(key);
  for (std::size_t i = 0; i < list.size(); ++i) each(list.at(i));
  return true;
}

std::int32_t read_character(const json_place& place) {
  const std::string text = place.text();
  std::size_t at = 0;
  const std::int32_t c = text.empty() ? -1 : next_character(text, at);
  if (c < 0 || at != text.size()) place.fail("one character");
  return c;
}

split_behavior read_behavior(const json_place& place) {
  const std::string name = place.text();
  if (name == "Removed") return split_behavior::removed;
  if (name == "Isolated") return split_behavior::isolated;
  if (name == "MergedWithPrevious") return split_behavior::merged_with_previous;
  if (name == "MergedWithNext") return split_behavior::merged_with_next;
  if (name == "Contiguous") return split_behavior::contiguous;
  place.fail("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

prepend_scheme read_scheme(const json_place& step) {
  const std::string name = step.text_or("prepend_scheme", step.flag_or("add_prefix_space", true) ? "always" : "never");
  if (name == "always") return prepend_scheme::always;
  if (name == "never") return prepend_scheme::never;
  if (name == "first") return prepend_scheme::first;
  step.at("prepend_scheme").fail("always, never or first");
}

}  // namespace

regex read_pattern(const json_place& pattern, std::optional<std::string>& literal) {
  if (pattern.value().is_string()) {
    literal = pattern.text();
  } else if (const auto text = pattern.find("String")) {
    literal = text->text();
  } else {
    const json_place expression = pattern.at("Regex");
    try {
      return regex(expression.text());
    } catch (const error& e) {
      raise(e.code(), expression.place() + ": " + e.message());
    }
  }
  return regex(literal->empty() ? "(?!)" : escape_regex(*literal));
}

void read_normalizer(const json_place& step, std::vector<std::unique_ptr<normalizer>>& out, int depth) {
  if (read_sequence(step, "normalizers", depth, [&](const json_place& s) { read_normalizer(s, out, depth + 1); }))
    return;
  const std::string type = step.at("type").text();
  if (type == "NFC") return out.push_back(make_unicode_form(unicode_form::nfc));
  if (type == "NFD") return out.push_back(make_unicode_form(unicode_form::nfd));
  if (type == "NFKC") return out.push_back(make_unicode_form(unicode_form::nfkc));
  if (type == "NFKD") return out.push_back(make_unicode_form(unicode_form::nfkd));
  if (type == "Lowercase") return out.push_back(make_lowercase());
  if (type == "StripAccents") return out.push_back(make_strip_accents());
  if (type == "Nmt") return out.push_back(make_nmt());
  if (type == "ByteLevel") return out.push_back(make_byte_characters());
  if (type == "Prepend") return out.push_back(make_prepend(step.at("prepend").text()));
  if (type == "Strip")
    return out.push_back(make_strip(step.flag_or("strip_left", true), step.flag_or("strip_right", true)));
  if (type == "Replace") {
    std::optional<std::string> literal;
    regex pattern = read_pattern(step.at("pattern"), literal);
    return out.push_back(make_replace(std::move(pattern), step.at("content").text()));
  }
  if (type == "BertNormalizer") {
    bert_normalization what;
    what.clean_text = step.flag_or("clean_text", true);
    what.handle_chinese_chars = step.flag_or("handle_chinese_chars", true);
    what.lowercase = step.flag_or("lowercase", true);
    what.strip_accents = step.flag_or("strip_accents", what.lowercase);
    return out.push_back(make_bert_normalizer(what));
  }
  if (type == "Precompiled") {
    const auto rules = step.find("precompiled_charsmap");
    std::string blob;
    if (rules && !decode_base64(rules->text(), blob)) rules->fail("base64");
    return out.push_back(make_precompiled(blob));
  }
  step.at("type").fail(
      "a normalizer: Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip, StripAccents, BertNormalizer, "
      "Precompiled, Nmt or ByteLevel");
}

void read_pre_tokenizer(const json_place& step, bool raw_bytes, std::vector<std::unique_ptr<splitter>>& out,
                        int depth) {
  if (read_sequence(step, "pretokenizers", depth,
                    [&](const json_place& s) { read_pre_tokenizer(s, raw_bytes, out, depth + 1); }))
    return;
  const std::string type = step.at("type").text();
  if (type == "ByteLevel")
    return out.push_back(
        make_byte_level(step.flag_or("add_prefix_space", true), step.flag_or("use_regex", true), !raw_bytes));
  if (type == "Split") {
    std::optional<std::string> literal;
    regex pattern = read_pattern(step.at("pattern"), literal);
    return out.push_back(
        make_split(std::move(pattern), read_behavior(step.at("behavior")), step.flag_or("invert", false)));
  }
  if (type == "Metaspace")
    return out.push_back(
        make_metaspace(step.text_or("replacement", metaspace_mark), read_scheme(step), step.flag_or("split", true)));
  if (type == "Whitespace") return out.push_back(make_whitespace());
  if (type == "WhitespaceSplit") return out.push_back(make_whitespace_split());
  if (type == "Punctuation") {
    const auto behavior = step.find("behavior");
    return out.push_back(make_punctuation(behavior ? read_behavior(*behavior) : split_behavior::isolated));
  }
  if (type == "Digits") return out.push_back(make_digits(step.flag_or("individual_digits", false)));
  if (type == "BertPreTokenizer") return out.push_back(make_bert_splitter());
  if (type == "CharDelimiterSplit") return out.push_back(make_delimiter(read_character(step.at("delimiter"))));
  if (type == "UnicodeScripts") return out.push_back(make_unicode_scripts());
  if (type == "FixedLength")
    return out.push_back(make_fixed_length(static_cast<std::size_t>(step.at("length").number(1, 1 << 30))));
  step.at("type").fail(
      "a pre-tokenizer: Sequence, ByteLevel, Split, Metaspace, Whitespace, WhitespaceSplit, Punctuation, Digits, "
      "BertPreTokenizer, CharDelimiterSplit, UnicodeScripts or FixedLength");
}

void read_decoder(const json_place& step, decode_steps& out, bool& fused, int depth) {
  if (read_sequence(step, "decoders", depth, [&](const json_place& s) { read_decoder(s, out, fused, depth + 1); }))
    return;
  const std::string type = step.at("type").text();
  if (type == "ByteLevel") {
    if (!fused) out.push_back(make_byte_characters_step());
    if (!fused) out.push_back(make_characters_step());
    fused = true;
    return;
  }
  if (type == "ByteFallback") {
    if (fused) return;  // one text is no byte token
    out.push_back(make_byte_fallback_step());
    out.push_back(make_characters_step());
    return;
  }
  if (type == "Fuse") {
    fused = true;
    return;
  }
  if (type == "Replace") {
    std::optional<std::string> literal;
    regex pattern = read_pattern(step.at("pattern"), literal);
    return out.push_back(make_replace_step(std::move(pattern), literal, step.at("content").text(), fused));
  }
  if (type == "Strip")
    return out.push_back(make_strip_step(read_character(step.at("content")),
                                         static_cast<std::size_t>(step.at("start").number(0, 1 << 20)),
                                         static_cast<std::size_t>(step.at("stop").number(0, 1 << 20)), fused));
  if (type == "Metaspace")
    return out.push_back(make_metaspace_step(step.text_or("replacement", metaspace_mark),
                                             read_scheme(step) != prepend_scheme::never, fused));
  if (type == "WordPiece")
    return out.push_back(make_word_piece_step(step.text_or("prefix", "##"), step.flag_or("cleanup", true), fused));
  if (type == "BPEDecoder") return out.push_back(make_bpe_step(step.text_or("suffix", "</w>"), fused));
  if (type == "CTC")
    return out.push_back(make_ctc_step(step.text_or("pad_token", "<pad>"), step.text_or("word_delimiter_token", "|"),
                                       step.flag_or("cleanup", true), fused));
  step.at("type").fail(
      "a decoder: Sequence, ByteLevel, ByteFallback, Fuse, Strip, Replace, Metaspace, WordPiece, CTC or BPEDecoder");
}

void read_post_processor(const json_place& step, tokens& prefix, tokens& suffix, int depth) {
  if (read_sequence(step, "processors", depth,
                    [&](const json_place& s) { read_post_processor(s, prefix, suffix, depth + 1); }))
    return;
  constexpr std::int64_t highest = 1 << 30;
  const std::string type = step.at("type").text();
  if (type == "ByteLevel") return;  // changes offsets alone
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const auto id_of = [&](std::string_view key) {
      const json_place pair = step.at(key);
      if (pair.size() != 2) pair.fail("a token and its number");
      return static_cast<token>(pair.at(std::size_t{1}).number(0, highest));
    };
    prefix.insert(prefix.begin(), id_of("cls"));
    suffix.push_back(id_of("sep"));
    return;
  }
  if (type != "TemplateProcessing")
    step.at("type").fail(
        "a post-processor: Sequence, TemplateProcessing, ByteLevel, BertProcessing or RobertaProcessing");
  const json_place list = step.at("single");
  tokens before, after;
  bool seen = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json_place part = list.at(i);
    if (part.find("Sequence")) {
      if (seen) part.fail("the sequence once");
      seen = true;
      continue;
    }
    const json_place ids = step.at("special_tokens").at(part.at("SpecialToken").at("id").text()).at("ids");
    for (std::size_t k = 0; k < ids.size(); ++k)
      (seen ? after : before).push_back(static_cast<token>(ids.at(k).number(0, highest)));
  }
  if (!seen) list.fail("a sequence");
  prefix.insert(prefix.begin(), before.begin(), before.end());
  suffix.insert(suffix.end(), after.begin(), after.end());
}

}  // namespace kiln::language::detail
