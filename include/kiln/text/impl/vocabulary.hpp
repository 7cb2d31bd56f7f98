#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/text/token.hpp"

namespace kiln::language::detail {

/// A hash of a few bytes: two multiplications for up to 16 of them.
inline std::uint64_t hash_bytes(std::string_view bytes) {
  constexpr std::uint64_t odd_a = 0x9E3779B97F4A7C15u, odd_b = 0xD6E8FEB86659FD93u;
  const auto load = [](const char* from, std::size_t n) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, n);
    return word;
  };
  const auto mix = [](std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  const char* at = bytes.data();
  std::size_t n = bytes.size();
  std::uint64_t hash = n * odd_b;
  for (; n > 16; at += 8, n -= 8) hash = mix(load(at, 8) ^ hash ^ odd_a, odd_b);
  std::uint64_t low, high;
  if (n >= 8) {  // two words that overlap
    low = load(at, 8), high = load(at + n - 8, 8);
  } else if (n >= 4) {
    low = load(at, 4), high = load(at + n - 4, 4);
  } else if (n > 0) {
    const auto byte = [&](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(at[i])}; };
    low = byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16, high = 0;
  } else {
    low = 0, high = 0;
  }
  return mix(low ^ hash ^ odd_a, high ^ odd_b ^ (hash << 1 | 1));
}

/// Spellings by number and numbers by spelling, in contiguous storage. Numbers may have holes.
class vocabulary {
 public:
  /// Makes room for tokens below `n`, so that putting them copies little.
  void reserve(std::size_t n);
  /// Gives a number a spelling. False, and nothing changes, where the number has one or the spelling a number.
  bool put(std::string_view spelling, token id);
  /// The number of a spelling; -1 where there is none.
  token find(std::string_view spelling) const;
  /// The spelling of a number; empty where there is none.
  std::string_view operator[](token id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= places_.size()) return {};
    const place& p = places_[static_cast<std::size_t>(id)];
    return std::string_view(pool_).substr(p.begin, p.size);
  }
  bool contains(token id) const {
    return id >= 0 && static_cast<std::size_t>(id) < places_.size() && places_[static_cast<std::size_t>(id)].known;
  }
  /// One more than the highest number.
  std::size_t size() const { return places_.size(); }
  /// Spellings.
  std::size_t count() const { return count_; }

 private:
  struct place {
    std::uint32_t begin = 0;
    std::uint32_t size : 31 = 0;
    std::uint32_t known : 1 = 0;
  };
  struct slot {
    std::uint32_t tag = 0;  // upper half of the hash
    token id = -1;
  };
  void grow(std::size_t slots);

  std::string pool_;
  std::vector<place> places_;
  std::vector<slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace kiln::language::detail
