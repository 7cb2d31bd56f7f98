#pragma once

#include <string>
#include <vector>

#include "kiln/text/impl/read/json_place.hpp"
#include "kiln/text/impl/tokenizer_parts.hpp"

namespace kiln::language::detail {

/// `tokenizer.json`, whole.
void read_tokenizer_json(const json_place& file, tokenizer_parts& parts);
/// Its steps.
void read_normalizer(const json_place& step, std::vector<std::unique_ptr<normalizer>>& out, int depth = 0);
void read_pre_tokenizer(const json_place& step, bool raw_bytes, std::vector<std::unique_ptr<splitter>>& out,
                        int depth = 0);
void read_decoder(const json_place& step, decode_steps& out, bool& fused, int depth = 0);
void read_post_processor(const json_place& step, tokens& prefix, tokens& suffix, int depth = 0);
/// Its model, with the vocabulary.
void read_model(const json_place& file, bool raw_bytes, tokenizer_parts& parts);
/// One of its `added_tokens`.
added_token read_added_token(const json_place& entry, token id);
/// A pattern, `{"String": ...}` or `{"Regex": ...}`, and its text where it is literal.
regex read_pattern(const json_place& pattern, std::optional<std::string>& literal);

/// `vocab.json` with `merges.txt`, in GPT-2's form.
void read_vocab_and_merges(const json_place& vocab, std::string_view merges, tokenizer_parts& parts);
/// `vocab.txt`, in BERT's form.
void read_vocab_txt(std::string_view lines, bool lowercase, tokenizer_parts& parts);

/// SentencePiece's `tokenizer.model`; `config`: `tokenizer_config.json`, where there is one. Returns its roles.
named_texts read_sentencepiece(std::string_view bytes, const json_place* config, tokenizer_parts& parts);

/// `tokenizer_config.json` and its companions: roles, added tokens, chat templates, and special tokens around texts
/// where `tokenizer.json` says none. `of_model`: the roles that SentencePiece's model names, which count where the
/// files name none; those that the files name are then found in texts.
void read_companions(const tokenizer::files& contents, bool has_post_processor, const named_texts* of_model,
                     tokenizer_parts& parts);

constexpr int deepest_sequence = 16;

}  // namespace kiln::language::detail
