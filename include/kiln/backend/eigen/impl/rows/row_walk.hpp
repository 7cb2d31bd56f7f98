#pragma once
#include <algorithm>
#include <optional>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/rows.hpp"

namespace kiln::eigen {

/// Elements that make a task worth handing to another thread (about 4 us of memory traffic).
inline constexpr std::int64_t task_grain = 16384;
/// The same for elements of any width.
inline std::int64_t task_elements(const tile_program& p) {
  return std::max<std::int64_t>(task_grain, 65536 / static_cast<std::int64_t>(p.width()));
}
/// Elements below which one thread runs a program: a fork and join, and the lines that a core has to fetch since the
/// other one wrote them, take as long as 40960 elements of 4 bytes in L2, less where more is computed of each.
inline std::int64_t least_shared(const tile_program& p) {
  if (!p.blocks()) return task_elements(p);
  constexpr int memory_bound = 8;  // instructions of a vector that take no longer than its bytes
  int weight = memory_bound;
  for (const block_program::level& l : p.blocks()->levels()) weight += std::max(0, l.weight - memory_bound);
  return std::max(task_elements(p), 5 * task_elements(p) / 2 * memory_bound / weight);
}
/// Elements by which a program's work is cut; each row has one at least, since one of none takes time as well.
inline std::int64_t elements_of(const row_loops& loops) {
  return loops.rows() * std::max<std::int64_t>(1, loops.row());
}
/// Elements of a task of `all`.
inline std::int64_t task_elements(const tile_program& p, std::int64_t all) {
  return all < least_shared(p) ? std::max<std::int64_t>(1, all) : task_elements(p);
}
/// Few tasks are as many for each thread: of seven tasks for two threads, one does four.
inline std::int64_t balanced(std::int64_t tasks, unsigned threads) {
  const std::int64_t each = threads;
  return tasks <= 1 || tasks >= 8 * each ? tasks : (tasks + each - 1) / each * each;
}

/// Tasks into which each of `outer` runs of `inner` rows is cut, where rows are computed `unit` at a time.
inline std::int64_t tasks_of_rows(std::int64_t outer, std::int64_t inner, std::int64_t row, std::int64_t unit,
                                  unsigned threads) {
  const std::int64_t some = std::max<std::int64_t>(1, task_grain / row / unit) * unit;
  const std::int64_t wanted = balanced(outer * ((inner + some - 1) / some), threads);
  return std::clamp<std::int64_t>((wanted + outer - 1) / outer, 1, inner);
}
/// Scratch for the streams of a thread's blocks: one for each operand.
inline constexpr std::size_t streams_bytes = row_loops::most_operands * sizeof(tile_program::stream);

/// The loops of a program over operands, in the order that reads the leading operand as it lies.
row_loops loops_of(const tile_program& p, std::span<const tensor> in, std::span<const tensor> out);

/// Operands in order: parameters, then results.
inline const tensor& operand_of(const launch& l, std::size_t k) {
  return k < l.in.size() ? l.in[k] : l.out[k - l.in.size()];
}

/// Whether a result lies where an operand does.
inline bool in_place(const launch& l) {
  for (const tensor& to : l.out)
    for (const tensor& from : l.in)
      if (to.data == from.data) return true;
  return false;
}

/// Elements from an operand's first one to its place `at` in the kept dims but the innermost.
inline std::int64_t outer_offset(const row_loops& loops, std::size_t operand, std::int64_t at) {
  std::int64_t offset = 0;
  for (std::size_t d = loops.kept.size(); d-- > 1;) {
    offset += at % loops.kept[d - 1] * loops.operand[operand].kept[d - 1];
    at /= loops.kept[d - 1];
  }
  return offset;
}

/// A worker's loop over consecutive rows.
class row_walk {
 public:
  row_walk(const tile_program& p, const launch& l, const row_loops& loops, std::byte* scratch)
      : p_(p), loops_(loops), cursor_(p, scratch, loops.row()), row_(loops.row()) {
    segments_ = loops.folded.back() == 0 ? 0 : row_ / loops.folded.back();
    for (std::size_t k = 0; k < loops.operand.size(); ++k) {
      const tensor& t = operand_of(l, k);
      tile_program::stream& s = k < l.in.size() ? cursor_.parameter(k) : cursor_.result(k - l.in.size());
      s.step = loops.operand[k].folded.back();
      operands_.push_back({t.data, &s, static_cast<std::int64_t>(size_of(t.type)), t.data});
    }
    at_.resize(loops.kept.size(), 0);
    cursor_.past_cache(l.unread);
    fetch_ahead(l.unread);
  }

  /// Rows [first, last), of each the elements [from, to) where nothing is folded.
  void run(std::int64_t first, std::int64_t last, std::int64_t from, std::int64_t to) {
    std::int64_t rest = first;
    for (std::size_t d = at_.size(); d-- > 0;) {
      at_[d] = rest % loops_.kept[d];
      rest /= loops_.kept[d];
    }
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      std::int64_t offset = from * operands_[k].at->step;
      for (std::size_t d = 0; d < at_.size(); ++d) offset += at_[d] * loops_.operand[k].kept[d];
      operands_[k].row = operands_[k].first + offset * operands_[k].width;
    }
    for (std::int64_t r = first; r < last; ++r) {
      row(to - from);
      next();
    }
  }

 private:
  struct operand {
    std::byte* first;
    tile_program::stream* at;
    std::int64_t width;  // bytes of an element
    std::byte* row;
  };

  // Prefetches while a row is computed: where rows are short, some rows ahead, else a short distance ahead in the same
  // row. Hardware prefetches within a page alone, and never for stores.
  void fetch_ahead(bool past_cache) {
    constexpr std::int64_t distance = 4096, longest_row = 1 << 16, cached = 1 << 18;
    const bool rows = p_.reduces() && loops_.folded.size() == 1;
    std::int64_t widest = 1;
    for (const operand& o : operands_) widest = std::max(widest, loops_.row() * o.width);
    const bool by_row = rows && widest <= longest_row && !loops_.kept.empty();
    cursor_.fetch_rows(by_row);
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      const operand& o = operands_[k];
      const std::int64_t row_bytes = loops_.row() * o.width;
      if (o.at->step != 1 || row_bytes * loops_.rows() <= cached) continue;
      if (past_cache && k >= p_.parameters()) continue;
      if (by_row && loops_.operand[k].kept.back() == 0) continue;  // every row is the same one
      if (by_row)
        cursor_.fetch_ahead(k, (distance + row_bytes - 1) / row_bytes * loops_.operand[k].kept.back() * o.width);
      else
        cursor_.fetch_ahead(k, distance);
    }
  }

  void next() {
    for (std::size_t d = at_.size(); d-- > 0;) {
      const bool carries = ++at_[d] == loops_.kept[d];
      const std::int64_t by = carries ? 1 - loops_.kept[d] : 1;
      for (std::size_t k = 0; k < operands_.size(); ++k)
        operands_[k].row += by * loops_.operand[k].kept[d] * operands_[k].width;
      if (!carries) return;
      at_[d] = 0;
    }
  }

  void row(std::int64_t n) {
    for (operand& o : operands_) o.at->at = o.row;
    cursor_.begin_row();
    for (int level = 0; level < p_.levels(); ++level) {
      if (segments_ == 1)
        cursor_.run(level, 0, n);
      else
        run_segments(level);
      cursor_.end_level(level, row_);
    }
  }

  void run_segments(int level) {
    const std::int64_t inner = loops_.folded.back();
    ints outer = loops_.folded;
    outer.pop_back();
    ints at(outer.size(), 0);
    for (std::int64_t s = 0; s < segments_; ++s) {
      for (std::size_t k = 0; k < operands_.size(); ++k) {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * loops_.operand[k].folded[d];
        operands_[k].at->at = operands_[k].row + offset * operands_[k].width;
      }
      cursor_.run(level, s * inner, inner);
      next_index(at, outer);
    }
    for (operand& o : operands_) o.at->at = o.row;
  }

  const tile_program& p_;
  const row_loops& loops_;
  tile_program::cursor cursor_;
  stack_list<operand, row_loops::most_operands> operands_;
  ints at_;
  std::int64_t row_, segments_;
};

/// Operands of a program without folds whose elements lie next to each other along a kept dim instead of along a row:
/// they are transposed tile by tile into scratch, where blocks read them, since to gather lanes one by one takes five
/// times as long.
struct transposed_operands {
  std::size_t dim = 0;                 ///< the kept dim along which they are contiguous
  std::int64_t rows = 0, columns = 0;  ///< of a tile
};
std::optional<transposed_operands> find_transposed(const tile_program& p, const row_loops& loops);
/// Of a thread.
std::size_t transposed_scratch_bytes(const tile_program& p, const row_loops& loops, const transposed_operands& t);
void run_transposed(const tile_program& p, const launch& l, const row_loops& loops, const transposed_operands& t);

/// Short rows of a program without folds whose results are dense: pieces of some rows are one contiguous row, for which
/// operands that repeat are written out in scratch, since to begin a row takes as long as hundreds of elements.
struct expanded_operands {
  std::size_t dim = 0;     ///< the kept dim that is cut into pieces; all inside of it is joined
  std::int64_t inner = 0;  ///< elements inside of one step of it
  std::int64_t steps = 0;  ///< of a piece
  std::int64_t cuts(const row_loops& loops) const { return (loops.kept[dim] + steps - 1) / steps; }
};
/// `scatters`: results of a few elements a row that lie apart (halves of a concatenation) are written to scratch and
/// copied to their places.
std::optional<expanded_operands> find_expanded(const tile_program& p, const row_loops& loops, bool scatters);
/// Of a thread.
std::size_t expanded_scratch_bytes(const tile_program& p, const row_loops& loops, const expanded_operands& e);
void run_expanded(const tile_program& p, const launch& l, const row_loops& loops, const expanded_operands& e);

/// Many rows of so few floats that to fold the lanes of a vector takes longer than their elements: some of them are
/// transposed in scratch, so that each lane is a row.
bool are_short_rows(const tile_program& p, const row_loops& loops, std::span<const tensor> in,
                    std::span<const tensor> out);
/// Of a thread.
std::size_t short_rows_scratch_bytes(const tile_program& p, const row_loops& loops);
void run_short_rows(const tile_program& p, const launch& l, const row_loops& loops);

/// Rows so few that threads would wait for each other, and so long that they are cut: each thread runs a level over its
/// piece, then the pieces' folds become one.
bool cuts_rows(const tile_program& p, const row_loops& loops, unsigned threads);
/// Of all threads.
std::size_t cut_rows_scratch_bytes(const tile_program& p, const row_loops& loops, unsigned threads);
void run_cut_rows(const tile_program& p, const launch& l, const row_loops& loops);

}  // namespace kiln::eigen
