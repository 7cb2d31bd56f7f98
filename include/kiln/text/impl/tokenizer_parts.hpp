#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kiln/text/impl/added_tokens.hpp"
#include "kiln/text/impl/decode/decoder.hpp"
#include "kiln/text/impl/pipeline.hpp"
#include "kiln/text/impl/scratch.hpp"
#include "kiln/text/impl/vocabulary.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::language::detail {

using named_texts = std::map<std::string, std::string, std::less<>>;

/// What a tokenizer consists of once its files are read; immutable but for its memory.
struct tokenizer_parts {
  vocabulary words;  ///< of the model
  added_tokens added;
  std::vector<std::unique_ptr<normalizer>> normalizers;
  std::vector<std::unique_ptr<splitter>> splitters;
  std::unique_ptr<language::detail::model> model;
  bool unmaps_bytes = false;  ///< splitters write bytes in GPT-2's alphabet, and the model takes bytes
  tokens prefix, suffix;      ///< special tokens around a text
  decode_steps decoders;
  std::size_t lone_decoders = 0;  ///< how many of the first steps look at a token alone
  std::vector<decoded> pieces;    ///< what these make of each token
  std::vector<decoded> inside;    ///< what all steps make of each where it is not the first, if that differs
  std::vector<bool> special_ids;

  special_tokens special;
  named_texts chat_templates, template_variables;

  mutable scratch_pool scratches;

  std::size_t size() const;
  std::string_view spelling(token id) const;
  token find(std::string_view spelling) const;
  /// Call it once everything else is set.
  void finish();
};

/// Reads the files of a folder.
std::shared_ptr<const tokenizer_parts> read_tokenizer(const tokenizer::files& contents);

/// The decoders' memory of one text.
struct decode_state {
  explicit decode_state(const tokenizer_parts& parts);
  decode_state(const decode_state&) = delete;
  decode_state& operator=(const decode_state&) = delete;

  /// Appends what a token makes certain.
  void put(token id, bool skip_special, std::string& out);
  void finish(std::string& out);

 private:
  struct text_end final : decode_sink {
    std::string* text = nullptr;
    void put(decoded& next) override { *text += next.text; }
    void finish() override {}
  };
  const tokenizer_parts& parts_;
  text_end end_;
  std::vector<std::unique_ptr<decode_sink>> sinks_;  // from the last to the first
  decode_sink* first_ = &end_;
  decoded next_;
};

}  // namespace kiln::language::detail
