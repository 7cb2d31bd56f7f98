#pragma once

#include <memory>
#include <string>

#include "kiln/text/tokenizer.hpp"

namespace kiln::language {

namespace detail {
struct decode_state;
}

/// Decodes tokens as they come. What `put` and, at the end, `finish` return is together what `tokenizer::decode` makes
/// of all tokens; the bytes of a character that is not complete are held back.
class token_stream {
 public:
  explicit token_stream(const tokenizer& source, decode_options = {});
  ~token_stream();
  token_stream(token_stream&&) noexcept;
  token_stream& operator=(token_stream&&) noexcept;

  /// The text that a further token makes certain; often empty. It stays valid until the next call.
  const std::string& put(token next);
  /// The text that was held back; the stream then begins anew.
  const std::string& finish();

 private:
  tokenizer source_;
  decode_options options_;
  std::unique_ptr<detail::decode_state> state_;
  std::string piece_;
};

}  // namespace kiln::language
