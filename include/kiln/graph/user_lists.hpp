#pragma once
#include <cstdint>
#include <utility>

#include "kiln/core/small_vector.hpp"

namespace kiln {

/// Who reads each instruction: one entry for each input slot and module output. The lists are threaded through one
/// array, since constant evaluation pays for every allocation.
class user_lists {
  struct entry {
    std::uint32_t user = 0, next = none;
  };
  struct list {
    std::uint32_t first = none, last = none, count = 0;
  };

 public:
  static constexpr std::uint32_t none = 0xffff'ffff;
  /// Stands for the module's outputs among the users.
  static constexpr std::uint32_t output_user = 0xffff'ffff;

  /// The users of one instruction, in the order in which they came.
  class range {
   public:
    class iterator {
     public:
      constexpr iterator(const entry* entries, std::uint32_t at) : entries_(entries), at_(at) {}
      constexpr std::uint32_t operator*() const { return entries_[at_].user; }
      constexpr iterator& operator++() {
        at_ = entries_[at_].next;
        return *this;
      }
      constexpr bool operator!=(const iterator& other) const { return at_ != other.at_; }

     private:
      const entry* entries_;
      std::uint32_t at_;
    };
    constexpr range(const entry* entries, const list& of) : entries_(entries), of_(of) {}
    constexpr iterator begin() const { return {entries_, of_.first}; }
    constexpr iterator end() const { return {entries_, none}; }
    constexpr std::uint32_t size() const { return of_.count; }
    constexpr bool empty() const { return of_.count == 0; }
    constexpr std::uint32_t front() const { return entries_[of_.first].user; }

   private:
    const entry* entries_;
    list of_;
  };

  constexpr user_lists() = default;
  /// The users of every instruction of a module.
  template <class Module> constexpr explicit user_lists(const Module& m) {
    lists_.resize(m.size());
    entries_.reserve(2 * m.size());
    for (std::uint32_t i = 0; i < m.size(); ++i)
      for (const auto v : m[i].inputs) add(v.instruction, i);
    for (const auto v : m.outputs) add(v.instruction, output_user);
  }

  constexpr void resize(std::size_t instructions) { lists_.resize(instructions); }
  constexpr range operator[](std::uint32_t i) const { return {entries_.data(), lists_[i]}; }
  constexpr std::uint32_t size(std::uint32_t i) const { return lists_[i].count; }
  constexpr void add(std::uint32_t i, std::uint32_t user) {
    entries_.push_back({user, none});
    link(i, static_cast<std::uint32_t>(entries_.size() - 1));
  }
  /// Removes one entry of a user.
  constexpr void remove(std::uint32_t i, std::uint32_t user) {
    list& l = lists_[i];
    std::uint32_t before = none, at = l.first;
    while (at != none && entries_[at].user != user) before = std::exchange(at, entries_[at].next);
    if (at == none) return;
    (before == none ? l.first : entries_[before].next) = entries_[at].next;
    if (l.last == at) l.last = before;
    --l.count;
  }
  /// Moves the entries for which `move(user)` holds from one list to the end of another.
  template <class Move> constexpr void move_if(std::uint32_t from, std::uint32_t to, Move&& move) {
    std::uint32_t at = lists_[from].first;
    lists_[from] = {};
    while (at != none) {
      const std::uint32_t next = entries_[at].next;
      entries_[at].next = none;
      link(move(entries_[at].user) ? to : from, at);
      at = next;
    }
  }

 private:
  constexpr void link(std::uint32_t i, std::uint32_t at) {
    list& l = lists_[i];
    if (l.count++ == 0)
      l.first = at;
    else
      entries_[l.last].next = at;
    l.last = at;
  }
  small_vector<list> lists_;
  small_vector<entry> entries_;
};

}  // namespace kiln
