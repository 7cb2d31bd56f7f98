#pragma once
#include <cstdint>

#include "kiln/generate/speculative_options.hpp"
#include "kiln/generate/speculative_stats.hpp"

namespace kiln::language::detail {

/// How many tokens a round guesses: a fixed width, or one that follows the rate at which tokens are made, by trying its
/// neighbors, as ONNX Runtime GenAI does.
class draft_width {
 public:
  explicit draft_width(const speculative_options& options);

  /// The width of the next round; 0: a step without a guess.
  std::size_t next() const { return static_cast<std::size_t>(pause_ > 0 ? 0 : width_); }
  /// A step without a guess that was asked for is done.
  void paused(speculative_stats& stats);
  /// A completed round: tokens that were guessed, those of them that were right, and what it took.
  void observe(std::int64_t guessed, std::int64_t accepted, double ms, speculative_stats& stats);
  void show(speculative_stats& stats) const;

 private:
  struct estimate {
    double rate = 0, acceptance = 0;
    std::int64_t count = 0;
    void add(double new_rate, double new_acceptance);
  };
  void adapt(double rate, double acceptance, speculative_stats& stats);
  void judge_probe(speculative_stats& stats);
  void move(std::int64_t to, speculative_stats& stats);

  bool adapts_, cools_;
  std::int64_t least_, width_;
  std::int64_t wrong_ = 0, pause_ = 0;  ///< rounds without a right guess, one after the other; steps without any
  std::int64_t home_ = 0;               ///< while a neighbor is tried: the width that it is measured against
  std::int64_t wait_ = 0;               ///< rounds before the next try
  estimate now_, before_;
};

}  // namespace kiln::language::detail
