#include "kiln/text/impl/tokenizer_parts.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"
#include "kiln/text/token_stream.hpp"

namespace kiln::language::detail {

std::size_t tokenizer_parts::size() const { return special_ids.size(); }

std::string_view tokenizer_parts::spelling(token id) const {
  const added_token* one = added.find(id);
  return one != nullptr ? std::string_view(one->content) : words[id];
}
token tokenizer_parts::find(std::string_view spelling) const {
  const added_token* one = added.find(spelling);
  return one != nullptr ? one->id : words.find(spelling);
}

void tokenizer_parts::finish() {
  std::size_t n = words.size();
  for (const added_token& t : added.all()) n = std::max(n, static_cast<std::size_t>(t.id) + 1);
  if (n > words.size() + (std::size_t{1} << 22))
    raise(errc::limit, "an added token has the number " + std::to_string(n - 1) + "; the vocabulary has " +
                           std::to_string(words.size()) + " tokens");
  special_ids.assign(n, false);
  for (const added_token& t : added.all()) special_ids[static_cast<std::size_t>(t.id)] = t.special;
  added.finish(normalizers);

  pieces.resize(n);
  for (std::size_t i = 0; i < n; ++i) pieces[i].text = spelling(static_cast<token>(i));
  // a token that is found in normalized text stands for that, as in tokenizers
  regex_memory memory;
  std::string spare;
  for (const added_token& t : added.all())
    if (t.normalized)
      for (const auto& step : normalizers) step->apply(pieces[static_cast<std::size_t>(t.id)].text, spare, memory);
  for (lone_decoders = 0; lone_decoders < decoders.size(); ++lone_decoders) {
    decoded probe;
    if (!decoders[lone_decoders]->apply_alone(probe)) break;
    for (decoded& one : pieces) decoders[lone_decoders]->apply_alone(one);
  }
  if (lone_decoders == decoders.size()) return;
  inside = pieces;
  for (std::size_t k = lone_decoders; k < decoders.size(); ++k)
    for (decoded& one : inside) decoders[k]->apply_inside(one);
}

decode_state::decode_state(const tokenizer_parts& parts) : parts_(parts) {
  for (std::size_t i = parts.decoders.size(); i-- > parts.lone_decoders;) {
    sinks_.push_back(parts.decoders[i]->start(*first_));
    first_ = sinks_.back().get();
  }
}

void decode_state::put(token id, bool skip_special, std::string& out) {
  if (id < 0 || static_cast<std::size_t>(id) >= parts_.size()) return;
  const auto i = static_cast<std::size_t>(id);
  if (skip_special && parts_.special_ids[i]) return;
  if (!parts_.words.contains(id) && parts_.added.find(id) == nullptr) return;
  end_.text = &out;
  next_ = parts_.pieces[i];
  first_->put(next_);
}
void decode_state::finish(std::string& out) {
  end_.text = &out;
  first_->finish();
}

}  // namespace kiln::language::detail
