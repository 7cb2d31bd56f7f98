#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::language::detail {

/// SentencePiece's compiled rules of normalization: a Darts-clone double array and the texts that keys become.
class charsmap {
 public:
  charsmap() = default;
  /// `blob`: the bytes of the array, as a little-endian 32-bit number, the array, the texts, each with a zero after
  /// it. Throws `error` (`malformed`).
  explicit charsmap(std::string_view blob);

  bool empty() const { return units_.empty(); }
  /// The shortest key that a text begins with, which is the one that tokenizers takes: its bytes and what it becomes; 0
  /// bytes where there is none.
  std::pair<std::size_t, std::string_view> shortest(std::string_view text) const { return find(text, true); }
  /// The longest one, which SentencePiece takes.
  std::pair<std::size_t, std::string_view> longest(std::string_view text) const { return find(text, false); }

 private:
  std::pair<std::size_t, std::string_view> find(std::string_view text, bool first) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace kiln::language::detail
