#pragma once
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>

#include "kiln/core/error.hpp"

// Damages files, and counts what importers make of them.
namespace kiln::fuzz {

using generator = std::mt19937_64;

inline std::size_t below(generator& random, std::size_t n) { return n ? static_cast<std::size_t>(random() % n) : 0; }

/// A part of the bytes, or all of them with a few changed, removed or repeated.
inline std::string damaged(std::string bytes, generator& random) {
  constexpr unsigned char telling[] = {0, 1, 2, 3, 4, 7, 8, 10, 18, 26, 34, 42, 63, 64, 127, 128, 192, 255};
  if (below(random, 8) == 0) return bytes.substr(0, below(random, bytes.size()));
  for (std::size_t n = 1 + below(random, 4); n != 0 && !bytes.empty(); --n) {
    const std::size_t at = below(random, bytes.size());
    switch (below(random, 6)) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(random, 8))); break;
      case 2: bytes.erase(at, 1 + below(random, 8)); break;
      case 3: bytes.insert(at, bytes.substr(below(random, bytes.size()), 1 + below(random, 32))); break;
      default: bytes[at] = static_cast<char>(telling[below(random, sizeof telling)]);
    }
  }
  return bytes;
}

/// Runs cases: `import(i, random, last)` imports what it damages and leaves in `last`. Each is a program or an error of
/// kiln's. False at the first that ends otherwise, whose damaged file stays in the folder of temporary files.
template <class Import> bool run_cases(std::size_t cases, std::uint64_t seed, Import&& import) {
  std::map<std::string, std::size_t> counts;
  for (std::size_t i = 0; i < cases; ++i) {
    generator random(seed * 1'000'003 + i);
    std::string last, fault, outcome = "a program";
    try {
      import(i, random, last);
    } catch (const error& e) {
      outcome = "an error";
      if (e.code() == errc::internal) fault = std::string("an internal error: ") + e.what();
    } catch (const std::exception& e) {
      fault = std::string("an exception that is not kiln's: ") + e.what();
    }
    ++counts[outcome];
    if (fault.empty()) continue;
    const std::string path = std::filesystem::temp_directory_path() / fmt::format("kiln_fuzz_{}_{}", seed, i);
    std::ofstream(path, std::ios::binary) << last;
    fmt::print("FAILED case {} of seed {}, in {}: {}\n", i, seed, path, fault);
    return false;
  }
  for (const auto& [what, count] : counts) fmt::print("{:7} {}\n", count, what);
  return true;
}

}  // namespace kiln::fuzz
