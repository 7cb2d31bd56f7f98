#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::language::detail {

/// A trie over bytes in two arrays (Aoe 1989): one step is an addition and a comparison. Keys are not empty.
class double_array {
 public:
  using entry = std::pair<std::string_view, std::int32_t>;  // key and value, 0 or more

  static constexpr std::int32_t root = 0, nowhere = -1;

  double_array() = default;
  /// Of two entries with one key the first counts.
  explicit double_array(std::vector<entry> entries);

  bool empty() const { return units_.empty(); }
  /// The node after a byte, or `nowhere`.
  std::int32_t step(std::int32_t node, char byte) const {
    const auto next =
        static_cast<std::uint32_t>(units_[static_cast<std::size_t>(node)].base) + static_cast<unsigned char>(byte);
    return next < units_.size() && units_[next].parent == node ? static_cast<std::int32_t>(next) : nowhere;
  }
  /// The value of the key that ends at a node; below 0 where none does.
  std::int32_t value(std::int32_t node) const { return units_[static_cast<std::size_t>(node)].value; }

  /// The longest key that a text begins with: its bytes and value; 0 bytes where there is none.
  std::pair<std::size_t, std::int32_t> longest_prefix(std::string_view text) const {
    std::pair<std::size_t, std::int32_t> best{0, -1};
    std::int32_t node = root;
    for (std::size_t at = 0; at < text.size() && !empty(); ++at) {
      node = step(node, text[at]);
      if (node == nowhere) break;
      if (const std::int32_t v = value(node); v >= 0) best = {at + 1, v};
    }
    return best;
  }

 private:
  struct unit {
    std::int32_t base = 0, parent = -1, value = -1;
  };
  std::int32_t place(std::span<const unsigned char> bytes);

  std::vector<unit> units_;
  std::size_t first_free_ = 1;
};

}  // namespace kiln::language::detail
