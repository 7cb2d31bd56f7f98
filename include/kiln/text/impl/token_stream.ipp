#include "kiln/text/token_stream.hpp"

#include <algorithm>
#include <utility>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/tokenizer_parts.hpp"

namespace kiln::language {

namespace {

struct match {
  std::size_t begin = std::string::npos, end = std::string::npos;
};

// Of all stop strings in a text the one that is complete first, and of those that end together the longest: what a
// search would find that sees the text character by character.
match first_stop(const std::string& text, const std::vector<std::string>& stops) {
  match out;
  for (const std::string& s : stops) {
    const std::size_t at = text.find(s);
    if (at == text.npos) continue;
    const std::size_t end = at + s.size();
    if (end < out.end || (end == out.end && at < out.begin)) out = {at, end};
  }
  return out;
}

// The length of the longest end of a text that begins a stop string.
std::size_t begun_stop(const std::string& text, const std::vector<std::string>& stops) {
  std::size_t most = 0;
  for (const std::string& s : stops)
    for (std::size_t n = std::min(s.size() - 1, text.size()); n > most; --n)
      if (text.compare(text.size() - n, n, s, 0, n) == 0) most = n;
  return most;
}

}  // namespace

token_stream::token_stream(const tokenizer& source, decode_options options, std::vector<std::string> stop_strings)
    : source_(source),
      options_(options),
      stops_(std::move(stop_strings)),
      state_(std::make_unique<detail::decode_state>(*source.parts_)) {
  for (const std::string& s : stops_)
    if (s.empty()) raise(errc::invalid_argument, "a stop string has a character at least: found an empty one");
}
token_stream::~token_stream() = default;
token_stream::token_stream(token_stream&&) noexcept = default;
token_stream& token_stream::operator=(token_stream&&) noexcept = default;

// Cuts the piece at a stop string, or before what may begin one.
void token_stream::hold_back() {
  held_ += piece_;
  const match met = first_stop(held_, stops_);
  is_stopped_ = met.begin != std::string::npos;
  const std::size_t certain = is_stopped_ ? met.begin : held_.size() - begun_stop(held_, stops_);
  piece_.assign(held_, 0, certain);
  held_.erase(0, is_stopped_ ? held_.size() : certain);
}

const std::string& token_stream::follow(std::span<const token> before) {
  piece_.clear();
  for (const token t : before) state_->put(t, options_.skip_special_tokens, piece_);
  return piece_;
}
const std::string& token_stream::put(token next) {
  piece_.clear();
  if (is_stopped_) return piece_;
  if (!stops_.empty() && source_.is_special(next) &&
      std::find(stops_.begin(), stops_.end(), source_.token_text(next)) != stops_.end()) {
    state_->finish(piece_);
    piece_.insert(0, std::exchange(held_, {}));
    is_stopped_ = true;
    return piece_;
  }
  state_->put(next, options_.skip_special_tokens, piece_);
  if (!stops_.empty()) hold_back();
  return piece_;
}
const std::string& token_stream::finish() {
  piece_.clear();
  if (!is_stopped_) {
    state_->finish(piece_);
    if (!stops_.empty()) hold_back();
    piece_ += held_;
  }
  held_.clear();
  is_stopped_ = false;
  state_ = std::make_unique<detail::decode_state>(*source_.parts_);
  return piece_;
}

}  // namespace kiln::language
