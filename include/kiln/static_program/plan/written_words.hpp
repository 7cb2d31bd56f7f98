#pragma once
#include "kiln/op/words.hpp"

namespace kiln::aot {

/// Which runs of words a program's records already hold: equal runs are written once.
class written_words {
 public:
  /// Appends `w` to `all`, unless it was put there before: gives its position.
  constexpr std::int64_t put(words& all, const words& w) {
    std::uint64_t hash = w.size();
    for (const std::int64_t x : w) hash = (hash ^ static_cast<std::uint64_t>(x)) * 0x9e37'79b9'7f4a'7c15;
    for (const run& r : runs_) {
      if (r.hash != hash || r.count != w.size()) continue;
      bool equal = true;
      for (std::size_t k = 0; equal && k < w.size(); ++k) equal = all[static_cast<std::size_t>(r.at) + k] == w[k];
      if (equal) return r.at;
    }
    runs_.push_back({hash, static_cast<std::int64_t>(all.size()), w.size()});
    for (const std::int64_t x : w) all.push_back(x);
    return runs_.back().at;
  }

 private:
  struct run {
    std::uint64_t hash = 0;
    std::int64_t at = 0;
    std::size_t count = 0;
  };
  small_vector<run> runs_;
};

}  // namespace kiln::aot
