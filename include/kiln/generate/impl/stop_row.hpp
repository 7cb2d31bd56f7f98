#pragma once
#include <span>

#include "kiln/text/token_stream.hpp"

namespace kiln::language::detail {

/// Whether a stop string came in what a sequence was continued with. The text begins where the caller appended last;
/// it goes on after what ended an earlier turn.
class stop_row {
 public:
  stop_row(const tokenizer& t, const std::vector<std::string>& strings) : text_(t, {}, strings) {}

  /// The text begins after so many tokens.
  void begin(std::size_t length) {
    begin_ = length;
    text_.finish();
  }
  /// Whether a further token completes a stop string.
  bool put(token next) {
    text_.put(next);
    return text_.is_stopped();
  }
  /// The sequence was cut to these tokens. Where the stop string is still among them, what follows begins a text.
  void rewind(std::span<const token> sequence) {
    begin(std::min(begin_, sequence.size()));
    for (const token t : sequence.subspan(begin_)) text_.put(t);
    if (text_.is_stopped()) begin(sequence.size());
  }

 private:
  token_stream text_;
  std::size_t begin_ = 0;
};

}  // namespace kiln::language::detail
