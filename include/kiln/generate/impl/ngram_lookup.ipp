#include "kiln/generate/impl/ngram_lookup.hpp"

#include <algorithm>

namespace kiln::language::detail {

std::uint64_t ngram_lookup::hash(std::span<const token> context) const {
  std::uint64_t h = 14695981039346656037u;  // FNV-1a over tokens
  for (const token t : context) h = (h ^ static_cast<std::uint32_t>(t)) * 1099511628211u;
  return h;
}

void ngram_lookup::add(std::size_t at) {
  if (at >= context_) after_[hash(std::span(seen_).subspan(at - context_, context_))] = at;
}

void ngram_lookup::follow(std::span<const token> sequence) {
  const auto same = std::mismatch(seen_.begin(), seen_.end(), sequence.begin(), sequence.end()).first;
  if (same != seen_.end()) seen_.clear(), after_.clear();  // rewound: places may be gone
  for (const token t : sequence.subspan(seen_.size())) {
    seen_.push_back(t);
    add(seen_.size() - 1);
  }
}

std::size_t ngram_lookup::find(std::span<const token> context) const {
  const auto found = after_.find(hash(context));
  if (found == after_.end()) return seen_.size();
  const auto known = std::span(seen_).subspan(found->second - context_, context_);
  return std::equal(known.begin(), known.end(), context.begin()) ? found->second : seen_.size();
}

tokens ngram_lookup::propose(std::span<const token> sequence, std::size_t most, bool chained, std::size_t& of_chain) {
  follow(sequence);
  of_chain = 0;
  tokens out;
  if (seen_.size() < context_) return out;
  tokens context(seen_.end() - static_cast<std::ptrdiff_t>(context_), seen_.end());
  do {
    const std::size_t from = find(context), count = std::min(most - out.size(), seen_.size() - from);
    if (count == 0) break;
    if (!out.empty()) of_chain += count;
    for (const token t : std::span(seen_).subspan(from, count)) {
      out.push_back(t);
      context.erase(context.begin());
      context.push_back(t);
    }
  } while (chained && out.size() < most);
  return out;
}

}  // namespace kiln::language::detail
