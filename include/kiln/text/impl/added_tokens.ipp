#include "kiln/text/impl/added_tokens.hpp"

#include <algorithm>
#include <cstring>

#include "kiln/text/impl/characters.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::detail {

token_finder::token_finder(const std::vector<added_token>& all, const std::vector<std::string>& spellings) {
  std::vector<double_array::entry> entries;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (spellings[i].empty()) continue;
    entries.emplace_back(spellings[i], static_cast<std::int32_t>(rules_.size()));
    rules_.push_back({all[i].id, all[i].single_word, all[i].lstrip, all[i].rstrip});
    first_[static_cast<unsigned char>(spellings[i][0])] = true;
  }
  for (int b = 0; b < 256; ++b)
    if (first_[static_cast<std::size_t>(b)]) only_first_ = only_first_ == -1 ? b : -2;
  trie_ = double_array(std::move(entries));
}

bool token_finder::next(std::string_view text, std::size_t from, std::size_t done, match& out) const {
  if (trie_.empty()) return false;
  for (std::size_t at = from; at < text.size(); ++at) {
    if (only_first_ >= 0) {
      const void* found = std::memchr(text.data() + at, only_first_, text.size() - at);
      if (found == nullptr) return false;
      at = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    } else {
      while (at < text.size() && !first_[static_cast<unsigned char>(text[at])]) ++at;
    }
    const auto [bytes, index] = trie_.longest_prefix(text.substr(at));
    if (bytes == 0) continue;
    const rules& r = rules_[static_cast<std::size_t>(index)];
    std::size_t begin = at, end = at + bytes;
    out.resume = end;
    if (r.single_word && ((begin > 0 && is_word(character_before(text, begin))) ||
                          (end < text.size() && is_word(character_at(text, end))))) {
      at = end - 1;  // as the search of tokenizers goes on after what it discards
      continue;
    }
    if (r.lstrip) {
      while (begin > done && is_whitespace(character_before(text, begin))) begin -= bytes_before(text, begin);
    }
    if (r.rstrip) {
      while (end < text.size() && is_whitespace(character_at(text, end))) end += character_bytes(text[end]);
    }
    out.id = r.id;
    out.begin = std::max(begin, done);
    out.end = std::max(end, out.begin);
    return true;
  }
  return false;
}

void added_tokens::put(added_token t) {
  std::size_t at = all_.size();
  if (const auto same = by_content_.find(t.content); same != by_content_.end())
    at = same->second;
  else if (const auto numbered = by_id_.find(t.id); numbered != by_id_.end())
    at = numbered->second;
  if (at < all_.size()) {
    by_content_.erase(all_[at].content);
    by_id_.erase(all_[at].id);
  } else {
    all_.emplace_back();
  }
  by_content_[t.content] = at;
  by_id_[t.id] = at;
  all_[at] = std::move(t);
}

void added_tokens::finish(const std::vector<std::unique_ptr<normalizer>>& steps) {
  std::vector<std::string> plain(all_.size()), changed(all_.size());
  regex_memory memory;
  std::string spare;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const added_token& t = all_[i];
    if (!t.in_text) continue;
    (t.normalized ? changed : plain)[i] = t.content;
    if (t.normalized)
      for (const auto& step : steps) step->apply(changed[i], spare, memory);
  }
  verbatim = token_finder(all_, plain);
  normalized = token_finder(all_, changed);
}

const added_token* added_tokens::find(token id) const {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : &all_[at->second];
}
const added_token* added_tokens::find(std::string_view content) const {
  const auto at = by_content_.find(content);
  return at == by_content_.end() ? nullptr : &all_[at->second];
}

}  // namespace kiln::language::detail
