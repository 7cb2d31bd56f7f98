#pragma once
#include <algorithm>
#include <bit>

#include "kiln/backend/hip/impl/rows/row_program.hpp"

namespace kiln::hip {

/// How a kernel with reductions divides its work: `lanes_` threads a row, each taking runs of `width_` elements. Where
/// no such width divides rows and what lies between them, runs begin where memory is aligned for them (`shifted_`): the
/// first and the last one of a row then have elements of other rows, too.
struct reduce_geometry {
  static constexpr int block_threads = 256;

  reduce_geometry(const row_program& p, std::span<const tensor> in, std::span<const tensor> out, bool dynamic,
                  const architecture& where)
      : p_(p), in_(in), out_(out) {
    find_nests();
    choose(dynamic, where);
  }

  void find_nests() {
    std::vector<std::int64_t> lens;
    for (std::size_t d = 0; d < p_.full.size(); ++d) lens.push_back(p_.full[d].is_constant() ? p_.full[d].value() : 1);
    for (std::size_t k = 0; k < in_.size() + out_.size(); ++k) {
      const tensor& t = operand(k);
      for (std::size_t d = 0; d < lens.size(); ++d)
        if (!p_.folded[d] || full(k)) lens[d] = t.lens[d];
    }
    const std::vector<bool> folded(p_.folded.begin(), p_.folded.end());
    std::vector<bool> kept = folded;
    kept.flip();
    rows_nest_ = make_nest(lens, in_, out_, kept, true);
    row_nest_ = make_nest(lens, in_, out_, folded, false);
    rows_ = rows_nest_.total();
    length_ = row_nest_.total();
  }
  const tensor& operand(std::size_t k) const { return k < in_.size() ? in_[k] : out_[k - in_.size()]; }
  bool full(std::size_t k) const { return k < in_.size() ? p_.full_parameter(k) : p_.results[k - in_.size()].full; }
  bool movable_by(std::int64_t w) const {
    if (row_nest_.extent.empty() || row_nest_.extent.back() % w != 0) return false;
    for (std::size_t k = 0; k < in_.size() + out_.size(); ++k) {
      if (!full(k) || row_nest_.step[k].back() == 0) continue;
      if (!movable(row_nest_, k, operand(k), w)) return false;
      for (std::int64_t s : rows_nest_.step[k])
        if (s % w != 0) return false;
    }
    return true;
  }

  /// Whether a row of an operand is one piece whose runs of `w` elements are aligned where those of `main` are.
  bool in_phase(std::size_t k, std::size_t main, std::int64_t w) const {
    std::int64_t dense = 1;
    for (std::size_t d = row_nest_.extent.size(); d-- > 0; dense *= row_nest_.extent[d])
      if (row_nest_.step[k][d] != dense) return false;
    const std::size_t bytes = std::min<std::size_t>(16, static_cast<std::size_t>(w) * size_of(operand(k).type));
    if (reinterpret_cast<std::uintptr_t>(operand(k).data) % bytes != 0) return false;
    for (std::size_t d = 0; d < rows_nest_.extent.size(); ++d) {
      const std::int64_t step = rows_nest_.step[k][d];
      if (step < 0 || (step - rows_nest_.step[main][d]) % w != 0) return false;
    }
    return true;
  }
  /// Whether rows can be taken in shifted runs of `w`: all results are written in such runs.
  bool shiftable_by(std::int64_t w, std::size_t main) const {
    constexpr std::int64_t enough = 8;  // runs, of which two may be partly of other rows
    if (length_ < enough * w || !in_phase(main, main, w)) return false;
    for (std::size_t k = in_.size(); k < in_.size() + out_.size(); ++k)
      if (full(k) && !in_phase(k, main, w)) return false;
    return true;
  }
  /// One past an operand's last element, counted from its first; no step is negative.
  std::int64_t end_of(std::size_t k) const {
    std::int64_t end = length_;
    for (std::size_t d = 0; d < rows_nest_.extent.size(); ++d)
      end += (rows_nest_.extent[d] - 1) * rows_nest_.step[k][d];
    return end;
  }
  /// Whether an operand has one element for a whole row.
  bool repeats(std::size_t k) const {
    return std::all_of(row_nest_.step[k].begin(), row_nest_.step[k].end(), [](std::int64_t s) { return s == 0; });
  }
  /// Runs of a row, at most.
  std::int64_t most_runs() const { return shifted_ ? (length_ + 2 * width_ - 2) / width_ : length_ / width_; }
  /// The fewest runs that a row may have.
  std::int64_t least_runs() const { return (length_ + width_ - 1) / width_; }

  void choose(bool dynamic, const architecture& where) {
    for (std::uint32_t k = 0; k < p_.values.size(); ++k) sums_ += p_.values[k].op == lower::row_op::reduction;
    std::size_t narrow = 8, wide = 1;
    std::size_t main = in_.size() + out_.size();
    for (std::size_t k = 0; k < in_.size() + out_.size(); ++k) {
      if (!full(k)) continue;
      narrow = std::min(narrow, size_of(operand(k).type)), wide = std::max(wide, size_of(operand(k).type));
      if (main == in_.size() + out_.size()) main = k;
    }
    const bool has_full = main < in_.size() + out_.size();
    // neighboring rows are adjacent in memory: a thread for each, lanes apart
    columns_ = has_full && !row_nest_.extent.empty() && std::abs(row_nest_.step[main].back()) != 1 &&
               !rows_nest_.extent.empty() && std::abs(rows_nest_.step[main].back()) == 1 &&
               rows_nest_.extent.back() >= 8;
    bool several = p_.levels > 1;
    for (const auto& r : p_.results) several = several || r.full;
    width_ = 1;
    if (!columns_) {
      const auto most = static_cast<std::int64_t>(std::min<std::size_t>(16 / narrow, 64 / wide));
      width_ = most;
      while (width_ > 1 && !movable_by(width_)) width_ /= 2;
      // 16 bytes of the widest operand, where that was faster on an H200: long rows that are read once, and those read
      // again that few threads hold in registers or blocks share; of 16 bits these took 1.7 times as long
      constexpr std::int64_t long_row = 4096, held_row = 16384, shared_row = 131072;
      const auto wanted = static_cast<std::int64_t>(16 / wide);
      const bool gains = several ? wide != 2 && (length_ <= held_row || length_ > shared_row) : length_ >= long_row;
      shifted_ = has_full && gains && wide <= 4 && width_ < wanted && shiftable_by(wanted, main);
      if (shifted_) width_ = wanted, main_ = main;
    }
    const std::int64_t runs = most_runs();
    const auto power = [](std::int64_t n) {
      return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
    };
    if (columns_) {
      across_ = 32;
      lanes_ = std::clamp<std::int64_t>(power(runs / 4), 1, 8);
      if (rows_ < 32 * 2 * where.multiprocessors) lanes_ = std::clamp<std::int64_t>(power(runs / 4), 1, 32);
      threads_ = across_ * lanes_;
      rows_a_block_ = across_;
    } else {
      across_ = 1;
      lanes_ = runs <= 32 ? power(runs) : 32;
      const std::int64_t most_each = std::max<std::int64_t>(1, 32 / width_);
      while (runs > 32 && lanes_ < 1024 && (runs + lanes_ - 1) / lanes_ > most_each) lanes_ *= 2;
      // few rows do not fill the machine: more threads to each
      while (runs > lanes_ * 2 && lanes_ < 1024 && rows_ * lanes_ < 512 * where.multiprocessors) lanes_ *= 2;
      threads_ = std::max<std::int64_t>(lanes_, block_threads);
      if (lanes_ > block_threads / 2 && lanes_ <= block_threads) threads_ = lanes_;
      rows_a_block_ = threads_ / lanes_;
    }
    each_ = std::max<std::int64_t>(1, (runs + lanes_ - 1) / lanes_);
    // long rows and few of them: parts of a row go to several blocks, a kernel a level, and each joins what the ones
    // before it summed. Where there are several levels, that pays for their launches where a thread would have many
    // runs
    const std::int64_t blocks = (rows_ + rows_a_block_ - 1) / rows_a_block_, many = several ? 32 : 8;
    if (sums_ > 0 && runs > lanes_ * many && blocks * (several ? 2 : 1) < where.multiprocessors && rows_ > 0) {
      splits_ =
          std::min<std::int64_t>(std::min<std::int64_t>(2 * where.multiprocessors / blocks, 256), runs / lanes_ / 4);
      splits_ =
          static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(splits_, 1))));
    }
    resident_ = !dynamic && splits_ == 1 && each_ <= 8 && each_ * width_ <= 32;
  }

  const row_program& p_;
  std::span<const tensor> in_, out_;
  loop_nest rows_nest_, row_nest_;
  std::int64_t rows_ = 0, length_ = 0;  ///< rows, and elements of one
  std::int64_t width_ = 1, lanes_ = 1, threads_ = block_threads, rows_a_block_ = 1;
  std::int64_t across_ = 1;  ///< with `columns_`: neighboring threads that work neighboring rows
  std::int64_t each_ = 1;    ///< runs of a thread
  std::int64_t splits_ = 1;  ///< parts of a row that blocks of their own sum up
  std::int64_t sums_ = 0;    ///< reductions
  bool columns_ = false;     ///< rows are adjacent in memory: neighboring threads work neighboring rows
  bool resident_ = false;    ///< a row stays in registers from level to level
  bool shifted_ = false;     ///< runs begin where those of operand `main_` are aligned
  std::size_t main_ = 0;
};

}  // namespace kiln::hip
