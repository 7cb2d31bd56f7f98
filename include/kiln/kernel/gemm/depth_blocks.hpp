#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "kiln/kernel/gemm/pack.hpp"

namespace kiln::kernels {

/// Rows of the right operand that are multiplied at a time: a panel of them takes at most 192 KiB, so that it, the rows
/// of the left operand that it meets and the next panel fit L2 together.
template <class T> std::int64_t depth_block(std::int64_t k) {
  constexpr std::int64_t most = 192 * 1024 / static_cast<std::int64_t>(sizeof(T)) / register_tile<T>::width;
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(k, most));
  return std::max<std::int64_t>(1, ceil_div(k, blocks));
}

/// The same for a right operand that comes from beyond a core's own caches where so many rows meet it. Few rows take
/// blocks of at most 24 KiB: those stay in L1 from one tile of rows to the next, and the block after them arrives while
/// all tiles multiply. (16 rows by GPT-2's matrices take two cores 22.9 ms, 8 rows 18 ms, where whole panels took 25.8
/// and 23.5 and memory alone takes 16.)
template <class T> std::int64_t far_depth_block(std::int64_t k, std::int64_t rows) {
  constexpr std::int64_t few = 48;
  constexpr std::int64_t most = 24 * 1024 / static_cast<std::int64_t>(sizeof(T)) / register_tile<T>::width;
  if (rows > few) return depth_block<T>(k);
  return std::max<std::int64_t>(1, ceil_div(k, std::max<std::int64_t>(1, ceil_div(k, most))));
}

/// Which workers have taken a task of a job: a worker's first task finds its operands colder than later ones.
class worker_visits {
 public:
  /// Whether this is the worker's first task; false for workers after the first 64.
  bool first(unsigned worker) {
    if (worker >= seen_.size()) return false;
    return !std::exchange(seen_[worker], true);
  }

 private:
  std::array<bool, 64> seen_{};
};

/// The blocks of one panel of the right operand, of at most `most` rows each. A panel that nothing has prefetched, as a
/// worker's first one, begins with short blocks that grow by half: the rows of the left operand that meet one block
/// hide the latency of the next (a first panel of 256 KiB that meets 49 rows takes 37 us instead of 45; blocks that
/// double come later than they are needed).
class depth_blocks {
 public:
  depth_blocks(std::int64_t depth, std::int64_t most, bool grow) : left_(depth), most_(most) {
    set_rows(grow ? std::min<std::int64_t>(shortest, most) : most);
  }
  /// Whether blocks of a panel that meets so many rows gain from growing: fewer rows hide no latency.
  template <class T> static bool grows(std::int64_t rows) { return rows >= 4 * register_tile<T>::rows; }
  std::int64_t begin() const { return begin_; }
  std::int64_t rows() const { return rows_; }
  bool last() const { return rows_ >= left_; }
  std::int64_t next_rows() const { return std::min(longer(), left_ - rows_); }
  void advance() {
    begin_ += rows_;
    left_ -= rows_;
    set_rows(longer());
  }

 private:
  static constexpr std::int64_t shortest = 64;
  std::int64_t longer() const { return std::min(most_, rows_ + rows_ / 4 * 2); }
  void set_rows(std::int64_t rows) { rows_ = std::min(rows, left_); }

  std::int64_t left_, most_, begin_ = 0, rows_ = 0;
};

}  // namespace kiln::kernels
