#pragma once
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kiln/text/guidance/guide.hpp"

/// An end token (0), every byte, and short random texts of the characters that patterns and JSON have most.
inline std::vector<std::string> byte_complete_texts(std::size_t size) {
  std::vector<std::string> texts{"</s>"};
  for (int b = 0; b < 256; ++b) texts.push_back(std::string(1, static_cast<char>(b)));
  std::mt19937 random(7);
  const std::vector<std::string> pieces = {"a", "b", "c",  "d",  "x", "A",  "Z", "0", "1",    "7",
                                           "9", "_", " ",  "-",  ".", "\n", "{", "}", "[",    "]",
                                           ",", ":", "\"", "\\", "é", "日", "😀", "e", "true", "null"};
  std::set<std::string> known(texts.begin(), texts.end());
  while (texts.size() < size) {
    std::string t;
    for (std::size_t n = 2 + random() % 5; n > 0; --n) t += pieces[random() % pieces.size()];
    if (random() % 4 == 0) t.pop_back();  // ends within a character
    if (known.insert(t).second) texts.push_back(t);
  }
  return texts;
}

/// The end token and every byte b as token b + 1.
inline const kiln::language::guide_vocabulary& bytes() {
  static const kiln::language::guide_vocabulary v(byte_complete_texts(257), {0});
  return v;
}

inline std::vector<std::uint32_t> mask_of(const kiln::language::guide& g, std::size_t size) {
  std::vector<std::uint32_t> bits((size + 31) / 32);
  g.mask(bits);
  return bits;
}
inline bool allows(const std::vector<std::uint32_t>& bits, kiln::language::token id) {
  return (bits[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0;
}
