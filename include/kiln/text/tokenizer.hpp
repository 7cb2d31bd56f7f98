#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/text/token.hpp"

namespace kiln {
class thread_pool;
}

namespace kiln::language {

/// How text becomes tokens.
struct encode_options {
  bool add_special_tokens = false;  ///< with those that the post-processor puts around a text, such as `<s>`
};

/// How tokens become text.
struct decode_options {
  bool skip_special_tokens = true;  ///< tokens that are marked special contribute nothing
};

/// The tokens with a role; a role that the files do not name is empty.
struct special_tokens {
  std::optional<token> bos, pad, unk;
  tokens eos;
};

namespace detail {
struct tokenizer_parts;
}

/// Turns text into tokens and back, as Hugging Face's `tokenizers` does for the same files.
/// Immutable and cheap to copy; all members may be called from several threads at once. Texts are UTF-8; bytes of a
/// text that are not are read as U+FFFD, one for each maximal part of a character (Unicode, section 3.9).
class tokenizer {
 public:
  /// The files of a model's folder by name, for models from memory.
  using files = std::map<std::string, std::string, std::less<>>;

  /// Reads `tokenizer.json`, else `vocab.json` with `merges.txt`, else `vocab.txt`, else SentencePiece's
  /// `tokenizer.model`, of which ids and texts are those of SentencePiece itself; and beside them
  /// `tokenizer_config.json`, `special_tokens_map.json`, `added_tokens.json`, `chat_template.jinja` and
  /// `chat_template.json` where they exist. Throws `error`: `not_found` for a folder without any of these, `malformed`
  /// and `unsupported` with the file and the key.
  static tokenizer load(const std::filesystem::path& folder);
  /// The same from files in memory.
  static tokenizer load(const files& contents);

  /// A text's tokens. Throws `error` where the model has no token for a part of it and none for the unknown.
  tokens encode(std::string_view text, encode_options = {}) const;
  /// The tokens of each text, made by the threads of a pool: the shared one where none is given.
  std::vector<tokens> encode_batch(std::span<const std::string> texts, encode_options = {},
                                   thread_pool* pool = nullptr) const;

  /// The text of tokens, always valid UTF-8. Numbers outside the vocabulary contribute nothing.
  std::string decode(std::span<const token> tokens, decode_options = {}) const;
  /// The text of each list of tokens, made by the threads of a pool.
  std::vector<std::string> decode_batch(std::span<const tokens> lists, decode_options = {},
                                        thread_pool* pool = nullptr) const;

  /// The token with this spelling in the vocabulary, such as `</s>` or `Ġthe`.
  std::optional<token> token_id(std::string_view spelling) const;
  /// A token's spelling in the vocabulary; empty for numbers without a token.
  std::string_view token_text(token id) const;
  /// The bytes that a token contributes to a text in which it is not the first, such as ` the`; they may be a part of a
  /// character. Empty for numbers without a token; a special token's are its spelling.
  std::string_view token_bytes(token id) const;
  /// One more than the highest token, added ones included.
  std::size_t vocabulary_size() const;

  /// Whether a token is left out where special ones are skipped.
  bool is_special(token id) const;
  /// The tokens with a role, by `tokenizer_config.json` and `special_tokens_map.json`.
  const special_tokens& special() const;

  /// The chat template with this name; the one without a name is `default`. Empty where the files have none.
  std::string_view chat_template(std::string_view name = "default") const;
  /// What a chat template may ask for by name: `bos_token` and its like, as text.
  const std::map<std::string, std::string, std::less<>>& template_variables() const;

 private:
  friend class token_stream;
  explicit tokenizer(std::shared_ptr<const detail::tokenizer_parts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const detail::tokenizer_parts> parts_;
};

}  // namespace kiln::language
