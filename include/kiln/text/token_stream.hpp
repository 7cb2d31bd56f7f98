#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/text/tokenizer.hpp"

namespace kiln::language {

namespace detail {
struct decode_state;
}

/// Decodes tokens as they come. What `put` and, at the end, `finish` return is together what `tokenizer::decode` makes
/// of all tokens; the bytes of a character that is not complete are held back.
///
/// With stop strings the text ends before the first of them that is complete, wherever tokens begin and end; what may
/// begin one is held back. One that is a special token's spelling is also met by that token, which contributes nothing.
class token_stream {
 public:
  /// Throws `invalid_argument` for a stop string that is empty.
  explicit token_stream(const tokenizer& source, decode_options = {}, std::vector<std::string> stop_strings = {});
  ~token_stream();
  token_stream(token_stream&&) noexcept;
  token_stream& operator=(token_stream&&) noexcept;

  /// Takes tokens that the text comes after, such as a prompt, in which no stop string counts: what a further token
  /// adds is what it adds to them. Their text as far as it is certain; it stays valid until the next call.
  const std::string& follow(std::span<const token> before);
  /// The text that a further token makes certain; often empty. It stays valid until the next call.
  const std::string& put(token next);
  /// The text that was held back; the stream then begins anew.
  const std::string& finish();
  /// Whether a stop string was met: further tokens add nothing.
  bool is_stopped() const { return is_stopped_; }

 private:
  void hold_back();

  tokenizer source_;
  decode_options options_;
  std::vector<std::string> stops_;
  std::string held_;
  bool is_stopped_ = false;
  std::unique_ptr<detail::decode_state> state_;
  std::string piece_;
};

}  // namespace kiln::language
