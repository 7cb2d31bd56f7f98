#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "kiln/generate/impl/page_pool.hpp"
#include "kiln/text/token.hpp"

namespace kiln::language::detail {

/// Full pages by the tokens that they and all pages before them hold, so that sequences with a common beginning share
/// them. Tokens are compared, not their hashes alone.
class prefix_index {
 public:
  explicit prefix_index(std::int64_t block) : block_(static_cast<std::size_t>(block)) {}

  /// What pages depend on beside tokens, by a number: those of different roots are not shared. 0 is the model as it is.
  static constexpr std::uint64_t root(std::uint64_t number) {
    return number == 0 ? 0 : number | std::uint64_t{1} << 63;
  }

  /// The pages of the longest known beginning of `all`, at most `most` of them.
  std::vector<page> find(std::span<const token> all, std::size_t most, std::uint64_t root = 0);
  /// Makes the full pages of a sequence known.
  void add(std::span<const token> all, std::span<const page> pages, std::uint64_t root = 0);
  /// Forgets pages that no sequence has, those used the longest ago first, until `count` are given up; the number given
  /// up.
  std::size_t release(std::size_t count);
  /// Pages that no sequence has.
  std::size_t unused() const;
  std::size_t size() const { return known_.size(); }

 private:
  // A page's number is its parent's key part: at the beginning it is the root.
  struct key {
    std::uint64_t parent = 0;
    tokens own;
    bool operator==(const key&) const = default;
  };
  struct hash {
    std::size_t operator()(const key& k) const;
  };
  struct entry {
    std::uint64_t number = 0, used = 0;
    page memory;
  };
  key key_at(std::uint64_t parent, std::span<const token> all, std::size_t k) const;
  std::size_t block_;
  std::uint64_t numbers_ = 0, clock_ = 0;
  std::unordered_map<key, entry, hash> known_;
};

}  // namespace kiln::language::detail
