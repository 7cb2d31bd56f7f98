#pragma once
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kiln/text/impl/guidance/automaton.hpp"
#include "kiln/text/impl/guidance/token_trie.hpp"

namespace kiln::language::guidance {

/// The deterministic states of an automaton as far as texts led to them, with their masks.
struct lazy_states {
  static constexpr std::int32_t dead = -1, unknown = -2;

  // Where a rule's end goes on: a place, and the frame of the rule that it is in; frame 0 is the language's own.
  struct frame {
    automaton::node to;
    std::uint32_t parent;
  };
  using spot = std::uint64_t;  // frame << 32 | place
  using spots = std::vector<spot>;
  struct state {
    const spots* where;  // that have edges, sorted; a key of `numbers`
    bool accepting;
    std::unique_ptr<std::array<std::int32_t, 256>> next;
    std::vector<std::uint32_t> mask;
  };

  std::vector<frame> frames{{0, 0}};
  std::unordered_map<std::uint64_t, std::uint32_t> frame_numbers;  // by parent << 32 | place
  std::map<std::pair<spots, bool>, std::int32_t> numbers;
  std::vector<state> states;
};

/// An automaton that reads tokens. All members may be called from several threads at once.
class machine {
 public:
  /// A state among those of a guide.
  struct position {
    std::shared_ptr<lazy_states> states;
    std::int32_t state = 0;
  };

  machine(automaton a, std::shared_ptr<const token_trie> trie) : automaton_(std::move(a)), trie_(std::move(trie)) {}

  const token_trie& trie() const { return *trie_; }
  position begin();
  void mask(const position& p, std::span<std::uint32_t> bits);
  /// The position after bytes; its state is `lazy_states::dead` where no text continues with them.
  position after(position p, std::string_view bytes);
  bool accepts(const position& p);
  /// The bytes that follow whatever is chosen, some thousands at most.
  std::string forced(position p);

 private:
  std::int32_t step(lazy_states& all, std::int32_t from, std::uint8_t byte) const;
  std::int32_t state_of(lazy_states& all, lazy_states::spots open) const;
  bool is_last(automaton::node n) const;
  std::uint32_t frame_of(lazy_states& all, automaton::node to, std::uint32_t parent) const;
  std::vector<std::uint32_t> mask_of(lazy_states& all, std::int32_t from) const;
  void make_room(position& p);

  const automaton automaton_;
  const std::shared_ptr<const token_trie> trie_;
  std::mutex mutex_;
  std::shared_ptr<lazy_states> current_;  // that new guides begin in
};

}  // namespace kiln::language::guidance
