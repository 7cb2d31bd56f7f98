#include "kiln/text/impl/guidance/token_trie.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "kiln/core/error.hpp"
#include "kiln/text/guidance/vocabulary.hpp"
#include "kiln/text/tokenizer.hpp"

namespace kiln::language {

namespace guidance {

std::string special_bytes(token id) { return "\xFF[" + std::to_string(id) + "]"; }

token_trie::token_trie(std::span<const std::string> bytes, const tokens& end,
                       std::map<std::string, token, std::less<>> special_tokens)
    : texts(bytes.begin(), bytes.end()), ends(bytes.size(), 0), end_tokens(end), specials(std::move(special_tokens)) {
  // a byte that no text has would read as the begin of a special token
  for (std::string& t : texts)
    if (t.find('\xFF') != t.npos) t.clear();
  for (const auto& [name, id] : specials) texts[static_cast<std::size_t>(id)] = special_bytes(id);
  for (const token id : end) {
    if (id < 0 || static_cast<std::size_t>(id) >= bytes.size())
      raise(errc::invalid_argument,
            "end token: expected 0 to " + std::to_string(bytes.size()) + " exclusive, found " + std::to_string(id));
    ends[static_cast<std::size_t>(id)] = 1;
    texts[static_cast<std::size_t>(id)].clear();
  }
  const auto text = [&](token id) -> const std::string& { return texts[static_cast<std::size_t>(id)]; };
  for (token id = 0; id < static_cast<token>(texts.size()); ++id) {
    if (text(id).size() > std::numeric_limits<std::uint16_t>::max())
      raise(errc::limit,
            "token " + std::to_string(id) + ": expected at most 65535 bytes, found " + std::to_string(text(id).size()));
    if (!text(id).empty()) by_bytes.push_back(id);
  }
  std::stable_sort(by_bytes.begin(), by_bytes.end(), [&](token a, token b) { return text(a) < text(b); });

  std::vector<std::uint32_t> path;  // the nodes of the last token's bytes
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back()) nodes[path.back()].next = static_cast<std::uint32_t>(nodes.size());
  };
  for (std::uint32_t k = 0; k < by_bytes.size(); ++k) {
    const std::string& t = text(by_bytes[k]);
    std::size_t same = 0;
    if (k > 0) {
      const std::string& before = text(by_bytes[k - 1]);
      same =
          static_cast<std::size_t>(std::mismatch(t.begin(), t.end(), before.begin(), before.end()).first - t.begin());
    }
    close(same);
    for (std::size_t d = same; d < t.size(); ++d) {
      path.push_back(static_cast<std::uint32_t>(nodes.size()));
      nodes.push_back({static_cast<std::uint8_t>(t[d]), static_cast<std::uint16_t>(d), 0, k, k});
    }
    nodes[path.back()].last = k + 1;
  }
  close(0);
}

std::pair<token, bool> token_trie::longest(std::string_view text) const {
  token found = -1;
  std::uint32_t at = 0, end = static_cast<std::uint32_t>(nodes.size());
  for (const char c : text) {
    while (at < end && nodes[at].byte != static_cast<std::uint8_t>(c)) at = nodes[at].next;
    if (at >= end) return {found, false};
    if (nodes[at].first < nodes[at].last) found = by_bytes[nodes[at].first];
    end = nodes[at++].next;
  }
  return {found, at < end};
}

}  // namespace guidance

guide_vocabulary::guide_vocabulary(std::span<const std::string> bytes, const tokens& end_tokens)
    : trie_(std::make_shared<guidance::token_trie>(bytes, end_tokens)) {}

guide_vocabulary guide_vocabulary::of(const tokenizer& t, const tokens& end_tokens, std::size_t size) {
  std::vector<std::string> bytes(std::max(size, t.vocabulary_size()));
  std::map<std::string, token, std::less<>> specials;
  for (std::size_t k = 0; k < t.vocabulary_size(); ++k) {
    const auto id = static_cast<token>(k);
    if (t.is_special(id))
      specials.emplace(t.token_text(id), id);
    else
      bytes[k] = t.token_bytes(id);
  }
  guide_vocabulary out;
  out.trie_ = std::make_shared<guidance::token_trie>(bytes, end_tokens, std::move(specials));
  return out;
}

std::size_t guide_vocabulary::size() const { return trie_->texts.size(); }

}  // namespace kiln::language
