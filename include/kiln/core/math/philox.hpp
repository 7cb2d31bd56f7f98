#pragma once
#include "kiln/core/math/types.hpp"

namespace kiln {

/// A number in [0, 1) of the first 53 bits of two random words.
KILN_FN constexpr double unit_number(scalar::u32 high, scalar::u32 low) {
  const double high_bits = high >> 5, low_bits = low >> 6;
  return (high_bits * 67108864.0 + low_bits) / 9007199254740992.0;
}

/// Where numbers of [0, 1) lie that are spread over [low, low + width). `least` and `most` are numbers of the result's
/// type: rounding keeps what is between them there, and would else leave the range at either end.
struct uniform_range {
  double low = 0, width = 1, least = 0, most = 1;
  KILN_FN constexpr double at(double unit) const {
    double x = low + width * unit;
    x = x < least ? least : x;
    return x > most ? most : x;
  }
};

/// The four random words of a counter: Philox of four words and ten rounds (Salmon, Moraes, Dror and Shaw 2011). Words
/// of different counters, or of different keys, are independent, so that any of them is made without those before it.
struct philox {
  scalar::u32 words[4];

  KILN_FN constexpr philox(scalar::u64 counter, scalar::u64 key) : philox(counter, scalar::u64{0}, key) {}
  /// `high` are the upper words of a counter of 128 bits.
  KILN_FN constexpr philox(scalar::u64 counter, scalar::u64 high, scalar::u64 key)
      : words{low_word(counter), high_word(counter), low_word(high), high_word(high)} {
    scalar::u32 first = low_word(key), second = high_word(key);
    for (int round = 0; round < 10; ++round) {
      const scalar::u64 a = scalar::u64{0xd2511f53u} * words[0], b = scalar::u64{0xcd9e8d57u} * words[2];
      words[0] = high_word(b) ^ words[1] ^ first, words[1] = low_word(b);
      words[2] = high_word(a) ^ words[3] ^ second, words[3] = low_word(a);
      first += 0x9e3779b9u, second += 0xbb67ae85u;
    }
  }
  /// Number 0 or 1 of two in [0, 1), 53 bits each.
  KILN_FN constexpr double number(int which) const { return unit_number(words[2 * which], words[2 * which + 1]); }

 private:
  KILN_FN static constexpr scalar::u32 low_word(scalar::u64 x) { return static_cast<scalar::u32>(x); }
  KILN_FN static constexpr scalar::u32 high_word(scalar::u64 x) { return static_cast<scalar::u32>(x >> 32); }
};

}  // namespace kiln
