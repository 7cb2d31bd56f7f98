#include "kiln/text/impl/model/unigram.hpp"

#include <algorithm>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/model/byte_tokens.hpp"
#include "kiln/text/impl/scratch.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::detail {

unigram::unigram(const vocabulary& words, settings s, const std::vector<scored>& found_in_text)
    : words_(words), settings_(s), scores_(words.size()) {
  std::vector<double_array::entry> entries;
  entries.reserve(found_in_text.size());
  for (const scored& one : found_in_text) {
    const std::string_view spelling = words[one.id];
    if (!spelling.empty()) entries.emplace_back(spelling, one.id);
    scores_[static_cast<std::size_t>(one.id)] = one.score;
  }
  trie_ = double_array(std::move(entries));
  if (settings_.byte_fallback) has_fallback_ = find_byte_tokens(words, fallback_);
}

void unigram::search(std::string_view text, unigram_memory& m) const {
  m.nodes.assign(text.size() + 1, {0, -1, -1});
  for (std::size_t at = 0; at < text.size();) {
    const double here = m.nodes[at].score;
    const std::size_t bytes = std::min(character_bytes(text[at]), text.size() - at);
    const auto reach = [&](std::size_t end, double score, token id) {
      auto& node = m.nodes[end];
      const double sum = score + here;
      if (node.begin >= 0 && !(sum > node.score)) return;
      node = {settings_.as_sentencepiece ? static_cast<float>(sum) : sum, static_cast<std::int32_t>(at), id};
    };
    bool one_character = false;
    std::int32_t node = trie_.empty() ? double_array::nowhere : double_array::root;
    for (std::size_t end = at; end < text.size() && node != double_array::nowhere;) {
      node = trie_.step(node, text[end++]);
      if (node == double_array::nowhere) break;
      const token id = trie_.value(node);
      if (id < 0) continue;
      reach(end, scores_[static_cast<std::size_t>(id)], id);
      one_character = one_character || end - at == bytes;
    }
    if (!one_character) reach(at + bytes, settings_.unknown_score, settings_.unknown);
    at += bytes;
  }
}

void unigram::append_unknown(std::string_view text, tokens& reversed) const {
  if (const token whole = settings_.as_sentencepiece ? -1 : words_.find(text); whole >= 0) {
    reversed.push_back(whole);
  } else if (has_fallback_) {
    for (std::size_t i = text.size(); i-- > 0;) reversed.push_back(fallback_[static_cast<unsigned char>(text[i])]);
  } else if (settings_.unknown >= 0) {
    reversed.push_back(settings_.unknown);
  } else {
    raise(errc::invalid_argument,
          "the text has \"" + std::string(text) + "\", which the vocabulary lacks, and there is no unknown token");
  }
}

void unigram::encode(std::string_view text, tokens& out, scratch& memory) const {
  std::uint64_t hash = 0;
  const bool kept = text.size() <= word_cache::longest_word;
  if (kept && memory.words.find(text, out, hash)) return;
  unigram_memory& m = memory.unigram;
  search(text, m);
  m.reversed.clear();
  for (std::size_t end = text.size(); end > 0;) {
    std::size_t begin = static_cast<std::size_t>(m.nodes[end].begin);
    if (m.nodes[end].id == settings_.unknown || m.nodes[end].id < 0) {
      // unknown characters side by side are one
      while (settings_.fuse_unknown && begin > 0 && m.nodes[begin].id == settings_.unknown)
        begin = static_cast<std::size_t>(m.nodes[begin].begin);
      append_unknown(text.substr(begin, end - begin), m.reversed);
    } else {
      m.reversed.push_back(m.nodes[end].id);
    }
    end = begin;
  }
  const std::size_t before = out.size();
  out.insert(out.end(), m.reversed.rbegin(), m.reversed.rend());
  if (kept) memory.words.put(text, hash, out.data() + before, out.size() - before);
}

}  // namespace kiln::language::detail
