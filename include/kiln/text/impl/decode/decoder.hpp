#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/text/impl/pipeline.hpp"
#include "kiln/text/impl/regex.hpp"

namespace kiln::language::detail {

/// What a step of decoding hands to the next: a token's text, or a part of the one text that all tokens have become.
struct decoded {
  std::string text;
  bool is_byte = false;  ///< the text is one byte that a byte token stands for
};

/// Takes what one step hands on.
struct decode_sink {
  virtual ~decode_sink() = default;
  virtual void put(decoded& next) = 0;
  virtual void finish() = 0;
};

/// One step of decoding. It is immutable; what it remembers from token to token is in the sink that it makes.
struct decode_step {
  virtual ~decode_step() = default;
  /// The memory of one text; it writes into `out`.
  virtual std::unique_ptr<decode_sink> start(decode_sink& out) const = 0;
  /// Changes a token in the same way wherever it stands; false where what becomes of it depends on others.
  virtual bool apply_alone(decoded&) const { return false; }
  /// Changes a token as it does where the token is not the first one of a text.
  virtual void apply_inside(decoded& token) const { apply_alone(token); }
};

/// A step that looks at a token alone: `change` is `void(decoded&)`.
template <class Change> class lone_step final : public decode_step {
 public:
  explicit lone_step(Change change) : change_(std::move(change)) {}
  std::unique_ptr<decode_sink> start(decode_sink& out) const override {
    struct sink final : decode_sink {
      sink(const Change& change, decode_sink& out) : change_(change), out_(out) {}
      void put(decoded& next) override {
        change_(next);
        out_.put(next);
      }
      void finish() override { out_.finish(); }
      const Change& change_;
      decode_sink& out_;
    };
    return std::make_unique<sink>(change_, out);
  }
  bool apply_alone(decoded& token) const override {
    change_(token);
    return true;
  }

 private:
  Change change_;
};
template <class Change> std::unique_ptr<decode_step> make_lone_step(Change change) {
  return std::make_unique<lone_step<Change>>(std::move(change));
}

using decode_steps = std::vector<std::unique_ptr<decode_step>>;

// The steps by the names that tokenizer.json has for them. `fused`: all tokens are one text where the step stands.

std::unique_ptr<decode_step> make_replace_step(regex pattern, std::optional<std::string> literal, std::string content,
                                               bool fused);
std::unique_ptr<decode_step> make_strip_step(std::int32_t character, std::size_t start, std::size_t stop, bool fused);
std::unique_ptr<decode_step> make_metaspace_step(std::string mark, bool drops_first, bool fused);
std::unique_ptr<decode_step> make_word_piece_step(std::string prefix, bool cleanup, bool fused);
std::unique_ptr<decode_step> make_bpe_step(std::string suffix, bool fused);
std::unique_ptr<decode_step> make_ctc_step(std::string pad, std::string delimiter, bool cleanup, bool fused);
/// Puts a space between tokens: what tokenizers does without a decoder.
std::unique_ptr<decode_step> make_join_step();

/// Leaves out a space in front of a text: the first token's, or, `of_each`, that of each token until there is a text. A
/// token with the text `unknown` keeps its own.
std::unique_ptr<decode_step> make_first_space_step(bool of_each, std::string unknown);

/// The characters of GPT-2's alphabet become bytes again; a token with others keeps its text.
std::unique_ptr<decode_step> make_byte_characters_step();
/// Byte tokens such as `<0x0A>` become bytes.
std::unique_ptr<decode_step> make_byte_fallback_step();
/// Puts characters together of bytes. What is none becomes U+FFFD: one for each byte of a byte token, else one for each
/// maximal part of a character.
std::unique_ptr<decode_step> make_characters_step();

}  // namespace kiln::language::detail
