#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kiln/core/buffer.hpp"
#include "kiln/core/error.hpp"

namespace kiln {

/// What compilation derives of a program for one machine, in the order in which it does: which of several methods are
/// taken, and constants in the forms that kernels read. A saved program keeps it, and a load, which makes the same
/// kernels in the same order, takes it from there: nothing is weighed, timed or packed again.
class derived_data {
 public:
  derived_data() = default;
  /// Of a saved program.
  derived_data(std::vector<std::int64_t> decisions, std::vector<buffer> blocks)
      : decisions_(std::move(decisions)), blocks_(std::move(blocks)), replays_(true) {}

  const std::vector<std::int64_t>& decisions() const { return decisions_; }
  const std::vector<buffer>& blocks() const { return blocks_; }
  /// Whether this is of a saved program: constants that kernels have packed have no data.
  bool replays() const { return replays_; }

  /// A decision among fewer than `end`; `choose()` takes it where this is a compilation.
  template <class Choose> std::int64_t decide(std::int64_t end, Choose&& choose) {
    if (!replays_) return decisions_.emplace_back(static_cast<std::int64_t>(choose()));
    if (next_decision_ == decisions_.size() || decisions_[next_decision_] < 0 || decisions_[next_decision_] >= end)
      misfit();
    return decisions_[next_decision_++];
  }
  /// So many bytes; `make()` gives them where this is a compilation.
  template <class Make> buffer block(std::size_t bytes, Make&& make) {
    if (!replays_) return blocks_.emplace_back(make());
    if (next_block_ == blocks_.size() || blocks_[next_block_].size() != bytes) misfit();
    return blocks_[next_block_++];
  }
  /// All of another compilation after what this has.
  void append(derived_data&& other) {
    decisions_.insert(decisions_.end(), other.decisions_.begin(), other.decisions_.end());
    for (buffer& b : other.blocks_) blocks_.push_back(std::move(b));
  }

 private:
  [[noreturn]] static void misfit() {
    raise(errc::malformed, "a saved program's decisions and packed constants are those of its kernels: these are not");
  }
  std::vector<std::int64_t> decisions_;
  std::vector<buffer> blocks_;
  bool replays_ = false;
  std::size_t next_decision_ = 0, next_block_ = 0;
};

}  // namespace kiln
