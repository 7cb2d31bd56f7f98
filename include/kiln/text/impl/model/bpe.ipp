#include "kiln/text/impl/model/bpe.hpp"

#include <algorithm>
#include <bit>

#include "kiln/core/error.hpp"
#include "kiln/text/impl/byte_alphabet.hpp"
#include "kiln/text/impl/model/byte_tokens.hpp"
#include "kiln/text/impl/scratch.hpp"
#include "kiln/text/impl/utf8.hpp"

namespace kiln::language::detail {

merge_table::merge_table(std::size_t expected) {
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(expected + expected / 2, 64));
  slots_.resize(slots);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots));
}

void merge_table::grow() {
  merge_table larger(slots_.size());
  for (const slot& s : slots_)
    if (s.left >= 0) larger.put(s.left, s.right, s.what);
  *this = std::move(larger);
}

void merge_table::put(token left, token right, merge m) {
  if ((used_ + 1) * 4 > slots_.size() * 3) grow();
  std::size_t at = start(left, right);
  while (slots_[at].left >= 0 && (slots_[at].left != left || slots_[at].right != right))
    at = (at + 1) & (slots_.size() - 1);
  if (slots_[at].left < 0) ++used_;
  slots_[at] = {left, right, m};
}

bpe::bpe(const vocabulary& words, settings s, const std::vector<rule>& merges)
    : words_(words), settings_(std::move(s)), merges_(merges.size()) {
  const std::size_t prefix = settings_.continuing_prefix ? settings_.continuing_prefix->size() : 0;
  bool crosses_marks = false;
  std::string joined;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto [left, right, rank] = merges[i];
    if (right.size() < prefix)
      raise(errc::malformed, "merge " + std::to_string(i) + ": \"" + std::string(right) +
                                 "\" is shorter than the prefix of continuing subwords");
    joined = left;
    joined += right.substr(prefix);
    const token l = words_.find(left), r = words_.find(right), both = words_.find(joined);
    if (l < 0 || r < 0 || both < 0)
      raise(errc::malformed, "merge " + std::to_string(i) + " needs \"" +
                                 std::string(l < 0   ? left
                                             : r < 0 ? right
                                                     : std::string_view(joined)) +
                                 "\", which the vocabulary lacks");
    merges_.put(l, r, {rank, both});
    crosses_marks = crosses_marks || (right.starts_with(metaspace_mark) && !left.ends_with(metaspace_mark));
  }
  splits_at_marks_ = !crosses_marks;
  set_symbols();
}

void bpe::set_symbols() {
  const bool marked = settings_.continuing_prefix || settings_.end_suffix;
  if (settings_.unknown) unknown_ = words_.find(*settings_.unknown);
  if (settings_.byte_fallback) has_fallback_ = find_byte_tokens(words_, fallback_);
  byte_symbol_.fill(-1);
  std::string spelling;
  for (int b = 0; b < (settings_.raw_bytes ? 256 : 128); ++b) {
    const char byte = static_cast<char>(b);
    spelling.clear();
    if (settings_.raw_bytes)
      append_byte_characters(spelling, {&byte, 1});
    else
      spelling = byte;
    byte_symbol_[static_cast<std::size_t>(b)] = words_.find(spelling);
  }
  if (settings_.raw_bytes && (settings_.ignore_merges || marked))
    for (std::size_t id = 0; id < words_.size(); ++id)
      if (words_.contains(static_cast<token>(id)))
        if (const auto bytes = bytes_of_characters(words_[static_cast<token>(id)]))
          raw_words_.put(*bytes, static_cast<token>(id));
  splits_at_marks_ = splits_at_marks_ && !settings_.raw_bytes && !marked && !settings_.ignore_merges &&
                     settings_.unused.empty() && words_.find(metaspace_mark) >= 0;
}

token bpe::find(std::string_view spelling) const { return (settings_.raw_bytes ? raw_words_ : words_).find(spelling); }

void bpe::encode(std::string_view text, tokens& out, scratch& memory) const {
  if (!splits_at_marks_) return encode_word(text, out, memory);
  // words as the cache likes them: each with its marks in front
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = text.find(metaspace_mark, at);
    if (mark == std::string_view::npos) break;
    std::size_t after = mark + metaspace_mark.size();
    while (text.substr(after).starts_with(metaspace_mark)) after += metaspace_mark.size();
    if (mark > begin) encode_word(text.substr(begin, mark - begin), out, memory);
    begin = mark;
    at = after;
  }
  if (begin < text.size()) encode_word(text.substr(begin), out, memory);
}

void bpe::encode_word(std::string_view word, tokens& out, scratch& memory) const {
  std::uint64_t hash = 0;
  // what an unused token comes apart into may depend on all of the text
  const bool kept = word.size() <= word_cache::longest_word && settings_.unused.empty();
  if (kept && memory.words.find(word, out, hash)) return;
  const std::size_t before = out.size();
  token whole = -1;
  if (settings_.ignore_merges) whole = find(word);
  if (whole >= 0) {
    out.push_back(whole);
  } else {
    bpe_memory& m = memory.bpe;
    m.symbols.clear();
    read_symbols(word, m.symbols);
    constexpr std::size_t shortest_list = 64;  // above, a heap takes less time than looking through all pairs
    if (m.symbols.size() < shortest_list)
      merge_short(m);
    else
      merge_long(m);
    if (settings_.unused.empty())
      out.insert(out.end(), m.symbols.begin(), m.symbols.end());
    else
      take_apart(m, out);
  }
  if (kept) memory.words.put(word, hash, out.data() + before, out.size() - before);
}

// The characters' tokens, as tokenizers' BPE::merge_word finds them.
void bpe::read_symbols(std::string_view word, tokens& symbols) const {
  const bool plain = !settings_.continuing_prefix && !settings_.end_suffix;
  std::string marked;
  bool unknown_waits = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t bytes = settings_.raw_bytes ? 1 : std::min(character_bytes(word[at]), word.size() - at);
    const std::string_view character = word.substr(at, bytes);
    token id;
    if (plain) {
      id = bytes == 1 ? byte_symbol_[static_cast<unsigned char>(word[at])] : words_.find(character);
    } else {
      marked.clear();
      if (at > 0 && settings_.continuing_prefix) marked = *settings_.continuing_prefix;
      marked += character;
      if (at + bytes == word.size() && settings_.end_suffix) marked += *settings_.end_suffix;
      id = find(marked);
    }
    at += bytes;
    if (id >= 0) {
      if (unknown_waits) symbols.push_back(unknown_);
      unknown_waits = false;
      symbols.push_back(id);
    } else if (has_fallback_) {
      for (const char byte : character) symbols.push_back(fallback_[static_cast<unsigned char>(byte)]);
    } else if (unknown_ >= 0) {
      if (unknown_waits && !settings_.fuse_unknown) symbols.push_back(unknown_);
      unknown_waits = true;
    }
  }
  if (unknown_waits) symbols.push_back(unknown_);
}

void bpe::merge_short(bpe_memory& m) const {
  tokens& s = m.symbols;
  auto& pairs = m.merges;
  if (s.size() > 1) {
    pairs.resize(s.size() - 1);
    for (std::size_t i = 0; i + 1 < s.size(); ++i) pairs[i] = propose(s[i], s[i + 1], m);
    while (true) {
      std::size_t best = 0;
      std::uint32_t rank = merge_table::none;
      for (std::size_t i = 0; i < pairs.size(); ++i)
        if (pairs[i].rank < rank) rank = pairs[i].rank, best = i;
      if (rank == merge_table::none) break;
      s[best] = pairs[best].result;
      s.erase(s.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(best));
      if (best > 0) pairs[best - 1] = propose(s[best - 1], s[best], m);
      if (best < pairs.size()) pairs[best] = propose(s[best], s[best + 1], m);
    }
  }
}

void bpe::merge_long(bpe_memory& m) const {
  tokens& s = m.symbols;
  const auto n = static_cast<std::int32_t>(s.size());
  m.links.resize(s.size());
  m.heap.clear();
  for (std::int32_t i = 0; i < n; ++i) {
    m.links[static_cast<std::size_t>(i)] = {i - 1, i + 1 < n ? i + 1 : -1};
    if (i + 1 == n) break;
    const auto found = propose(s[static_cast<std::size_t>(i)], s[static_cast<std::size_t>(i) + 1], m);
    if (found.rank != merge_table::none) m.heap.push_back({found.rank, i, found.result});
  }
  std::make_heap(m.heap.begin(), m.heap.end());
  constexpr token gone = std::numeric_limits<token>::min();
  const auto consider = [&](std::int32_t left, std::int32_t right) {
    const auto found = propose(s[static_cast<std::size_t>(left)], s[static_cast<std::size_t>(right)], m);
    if (found.rank == merge_table::none) return;
    m.heap.push_back({found.rank, left, found.result});
    std::push_heap(m.heap.begin(), m.heap.end());
  };
  while (!m.heap.empty()) {
    std::pop_heap(m.heap.begin(), m.heap.end());
    const auto top = m.heap.back();
    m.heap.pop_back();
    token& here = s[static_cast<std::size_t>(top.at)];
    auto& link = m.links[static_cast<std::size_t>(top.at)];
    if (here == gone || link.after < 0) continue;
    token& after = s[static_cast<std::size_t>(link.after)];
    // the pair may have changed since it was put in
    const auto now = merges_.find(here, after);
    if (now.rank != top.rank || now.result != top.result) continue;
    here = top.result;
    after = gone;
    link.after = m.links[static_cast<std::size_t>(link.after)].after;
    if (link.before >= 0) consider(link.before, top.at);
    if (link.after >= 0) {
      m.links[static_cast<std::size_t>(link.after)].before = top.at;
      consider(top.at, link.after);
    }
  }
  std::erase(s, gone);
}

merge_table::merge bpe::propose(token left, token right, bpe_memory& m) const {
  const auto found = merges_.find(left, right);
  if (found.result >= 0 && !settings_.unused.empty() && settings_.unused[static_cast<std::size_t>(found.result)])
    m.halves[found.result] = {left, right};
  return found;
}

// As SentencePiece's bpe_model.cc does: an unused token becomes the two that were last seen side by side for it.
void bpe::take_apart(bpe_memory& m, tokens& out) const {
  m.open.assign(m.symbols.rbegin(), m.symbols.rend());
  while (!m.open.empty()) {
    const token id = m.open.back();
    m.open.pop_back();
    const auto found = m.halves.find(id);
    if (found == m.halves.end()) {
      out.push_back(id);
    } else {
      m.open.push_back(found->second.second);
      m.open.push_back(found->second.first);
    }
  }
  m.halves.clear();
}

}  // namespace kiln::language::detail
