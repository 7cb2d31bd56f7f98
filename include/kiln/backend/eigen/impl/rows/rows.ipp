#include <algorithm>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/backend/eigen/impl/rows/row_pairs.hpp"
#include "kiln/backend/eigen/impl/rows/row_walk.hpp"
#include "kiln/core/huge_page.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// Rows are adjacent where the folded dims are not contiguous and the innermost kept one is: then each lane of a block
// is a row.
bool adjacent_rows(const tile_program& p, const row_loops& loops) {
  if (!p.blocks() || !p.reduces() || loops.kept.empty() || loops.folded.empty() || loops.kept.back() < 4) return false;
  bool apart = false;
  for (std::size_t k = 0; k < loops.operand.size(); ++k) {
    const auto& o = loops.operand[k];
    if (o.kept.back() != 0 && o.kept.back() != 1) return false;
    apart = apart || (k < p.parameters() && p.full_parameter(k) && o.kept.back() == 1 && o.folded.back() != 1);
    if (k >= p.parameters() && o.kept.back() != 1) return false;
  }
  return apart && loops.folded.back() != 1;
}

void run_strips(const tile_program& p, const launch& l, const row_loops& loops) {
  const std::int64_t row = loops.row(), inner = loops.kept.back(),
                     outer = loops.rows() / std::max<std::int64_t>(1, inner);
  const std::int64_t widest = p.blocks()->strip_for(row), narrow = kiln_eigen_isa()->blocks()->lanes[0];
  const std::size_t each = p.blocks()->scratch_bytes(row, widest) + streams_bytes;
  const std::int64_t strips = std::max<std::int64_t>(1, inner / widest);  // the last one has the rest as well
  // A rest does some of the rows before it again: to stage a few lanes takes ten times as long, and several narrow
  // strips longer than a wide one.
  const bool twice = !in_place(l);
  l.pool->parallel_for(outer * strips, [&](std::int64_t task, unsigned worker) {
    std::byte* const scratch = l.scratch.data() + worker * each;
    block_cursor cursor(*p.blocks(), scratch + streams_bytes, row, widest);
    auto* const streams = reinterpret_cast<tile_program::stream*>(scratch);
    const std::int64_t strip = task % strips, first = strip * widest,
                       last = strip + 1 == strips ? inner : first + widest;
    for (std::int64_t from = first; from < last;) {
      const std::int64_t rest = last - from;
      if (twice && rest > 2 * narrow && rest < widest && last - first >= widest)
        from = last - widest;
      else if (twice && rest < narrow)
        from = std::max(first, last - narrow);
      const std::int64_t count = last - from >= widest ? widest : std::min(narrow, last - from);
      for (std::size_t k = 0; k < loops.operand.size(); ++k) {
        const tensor& t = operand_of(l, k);
        const std::int64_t offset = from * loops.operand[k].kept.back() + outer_offset(loops, k, task / strips);
        new (streams + k) tile_program::stream{t.data + offset * static_cast<std::int64_t>(size_of(t.type)),
                                               loops.operand[k].kept.back()};
      }
      cursor.strip(streams, count, loops);
      from += count;
    }
  });
}

// Of an operand that repeats one element along a row, a batch's rows are written out.
bool is_spread(const tile_program& p, const row_loops& loops, std::size_t k) {
  constexpr std::int64_t longest = 4096;
  return p.reduces() && k < p.parameters() && p.full_parameter(k) && loops.operand[k].folded[0] == 0 &&
         loops.row() > 1 && loops.row() <= longest;
}

// Rows are contiguous and their levels compiled loops: then a level runs over several rows before the next one. Without
// folds that pays where many rows are short, since a call costs as much as hundreds of elements.
bool level_by_level(const tile_program& p, const row_loops& loops) {
  if (!p.blocks() || !p.blocks()->compiled() || loops.folded.size() != 1 || loops.row() == 0) return false;
  constexpr std::int64_t few = 4, many = 16;
  if (!p.reduces() && (loops.kept.empty() || loops.kept.back() < many || p.blocks()->batch_for(loops.row()) < few))
    return false;
  for (std::size_t k = 0; k < loops.operand.size(); ++k) {
    const bool full = k < p.parameters() ? p.full_parameter(k) : p.full_result(k - p.parameters());
    if (full && loops.row() != 1 && loops.operand[k].folded[0] != 1 && !is_spread(p, loops, k)) return false;
  }
  return true;
}

// Short rows as one. Compiled loops take rows of some vectors as they are.
std::optional<expanded_operands> joined_rows(const tile_program& p, const row_loops& loops) {
  constexpr std::int64_t vectors = 32;
  const bool by_level = level_by_level(p, loops);
  if (loops.row() >= vectors && by_level) return {};
  return find_expanded(p, loops, !by_level);
}

// Of the rows of a batch that are written out.
std::size_t spread_bytes(const block_program& p, std::int64_t row) {
  constexpr std::size_t slack = 64;  // see `spread_function`
  return padded_bytes(static_cast<std::size_t>(p.batch_for(row) * row) * sizeof(double)) + slack;
}
std::size_t batch_scratch_bytes(const tile_program& p, const row_loops& loops) {
  const std::int64_t row = loops.row();
  std::size_t bytes =
      p.blocks()->scratch_bytes(block_program::row_stride(row), p.blocks()->batch_for(row)) + streams_bytes;
  for (std::size_t k = 0; k < p.parameters(); ++k)
    if (is_spread(p, loops, k)) bytes += spread_bytes(*p.blocks(), row);
  return bytes;
}

// Elements of a row by which tasks are cut: its own, or more where more than two operands go on from row to row.
std::int64_t row_weight(const tile_program& p, const row_loops& loops) {
  std::int64_t streams = 0;
  for (std::size_t k = 0; k < loops.operand.size(); ++k) {
    const bool full = k < p.parameters() ? p.full_parameter(k) : p.full_result(k - p.parameters());
    if (full && !loops.operand[k].kept.empty() && loops.operand[k].kept.back() != 0) ++streams;
  }
  return loops.row() * std::max<std::int64_t>(2, streams) / 2;
}

// Rows that differ in the innermost kept dim are a run of them; a task has a part of a long run, or several short ones.
void run_batches(const tile_program& p, const launch& l, const row_loops& loops) {
  const std::int64_t row = loops.row(), rows = loops.rows(), inner = loops.kept.empty() ? 1 : loops.kept.back();
  const std::int64_t batch = std::min(inner, p.blocks()->batch_for(row)), stride = block_program::row_stride(row);
  const std::int64_t weight = row_weight(p, loops);
  const std::int64_t tasks =
      rows * weight < least_shared(p) ? 1 : tasks_of_rows(1, rows, weight, batch, l.pool->size());
  const std::size_t each = batch_scratch_bytes(p, loops);
  const auto body = [&](std::int64_t task, unsigned worker) {
    std::byte* const scratch = l.scratch.data() + worker * each;
    block_cursor cursor(*p.blocks(), scratch + streams_bytes, stride, p.blocks()->batch_for(row));
    auto* const streams = reinterpret_cast<tile_program::stream*>(scratch);
    std::int64_t bytes[row_loops::most_operands];  // from row to row
    struct spread_rows {
      std::size_t stream;
      const std::byte* from;
      std::byte* to;
    };
    stack_list<spread_rows, row_loops::most_operands> spread;
    std::byte* written = scratch + each;
    cursor.fetch_rows(true);
    for (std::size_t k = 0; k < loops.operand.size(); ++k) {
      const auto width = static_cast<std::int64_t>(size_of(operand_of(l, k).type));
      bytes[k] = loops.operand[k].kept.empty() ? 0 : loops.operand[k].kept.back() * width;
      new (streams + k) tile_program::stream{nullptr, 1};
      if (is_spread(p, loops, k)) {
        written -= spread_bytes(*p.blocks(), row);
        spread.push_back({k, nullptr, written});
        bytes[k] = row * width;
        continue;
      }
      // The next rows are prefetched while these are computed, and the lines of results before they are written.
      constexpr std::int64_t cached = 1 << 20;
      if (bytes[k] == row * width && bytes[k] * rows > cached && !(l.unread && k >= l.in.size()))
        cursor.fetch_ahead(k, k < l.in.size() || !p.reduces() ? batch * bytes[k] : 0);
    }
    const std::int64_t last = (task + 1) * rows / tasks;
    for (std::int64_t first = task * rows / tasks, end = 0; first < last; first = end) {
      end = std::min(last, (first / inner + 1) * inner);
      for (std::size_t k = 0; k < loops.operand.size(); ++k) {
        const tensor& t = operand_of(l, k);
        const std::int64_t step = loops.operand[k].kept.empty() ? 0 : loops.operand[k].kept.back();
        streams[k].at = t.data + (first % inner * step + outer_offset(loops, k, first / inner)) *
                                     static_cast<std::int64_t>(size_of(t.type));
      }
      for (spread_rows& s : spread) {
        s.from = streams[s.stream].at;
        streams[s.stream].at = s.to;
      }
      for (std::int64_t r = first; r < end; r += batch) {
        const std::int64_t count = std::min(batch, end - r);
        for (spread_rows& s : spread) {
          const std::size_t width = size_of(l.in[s.stream].type);
          const std::int64_t step = loops.operand[s.stream].kept.empty() ? 0 : loops.operand[s.stream].kept.back();
          kiln_eigen_typed_tiles()->spread(width)(s.from, step, s.to, count, row);
          s.from += count * step * static_cast<std::int64_t>(width);
        }
        cursor.batch(streams, bytes, count, row, l.unread);
        for (std::size_t k = 0; k < loops.operand.size(); ++k) streams[k].at += count * bytes[k];
        for (const spread_rows& s : spread) streams[s.stream].at = s.to;
      }
    }
    if (l.unread) kiln_eigen_isa()->blocks()->fence();
  };
  if (tasks == 1)
    body(0, 0);
  else
    l.pool->parallel_for(tasks, body);
}

void run_loops(const tile_program& p, const launch& l, const row_loops& loops) {
  const std::int64_t rows = loops.rows(), row = loops.row();
  if (rows == 0 || (row == 0 && !p.reduces())) return;
  if (adjacent_rows(p, loops)) return run_strips(p, l, loops);
  if (cuts_rows(p, loops, l.pool->size())) return run_cut_rows(p, l, loops);
  if (are_short_rows(p, loops, l.in, l.out)) return run_short_rows(p, l, loops);
  if (const auto t = find_transposed(p, loops)) return run_transposed(p, l, loops, *t);
  if (const auto e = joined_rows(p, loops)) return run_expanded(p, l, loops, *e);
  if (level_by_level(p, loops)) return run_batches(p, l, loops);
  const std::size_t each = p.scratch_bytes(row);
  const std::int64_t grain = task_elements(p, elements_of(loops));
  const bool cut = !p.reduces();      // without folds a long row is cut as well
  constexpr std::int64_t unit = 256;  // pieces are whole lines, so that vectors stay aligned
  const unsigned threads = l.pool->size();
  // To begin a task takes a tenth of what it does: some for each thread are enough.
  const auto some_tasks = [&](std::int64_t tasks) {
    return balanced(std::max(std::min<std::int64_t>(tasks, 2 * threads), tasks / 2), threads);
  };
  const std::int64_t cuts = some_tasks(cut ? std::max<std::int64_t>(1, (row + grain - 1) / grain) : 1);
  const std::int64_t piece = cuts == 1 ? row : ((row + cuts - 1) / cuts + unit - 1) / unit * unit;
  const std::int64_t pieces = cuts == 1 ? 1 : (row + piece - 1) / piece;
  const std::int64_t some = std::max<std::int64_t>(1, grain / std::max<std::int64_t>(1, piece));
  const std::int64_t wanted = pieces == 1 ? some_tasks((rows + some - 1) / some) : rows;
  const std::int64_t parts = std::min(rows, wanted), tasks = parts * pieces;
  const auto body = [&](std::int64_t task, unsigned worker) {
    const std::int64_t first = task / pieces * rows / parts, last = (task / pieces + 1) * rows / parts;
    const std::int64_t from = task % pieces * piece, to = std::min(row, from + piece);
    row_walk(p, l, loops, l.scratch.data() + worker * each).run(first, last, from, to);
  };
  if (tasks == 1)
    body(0, 0);
  else
    l.pool->parallel_for(tasks, body);
}

// By parameter of a pointwise body: whether it has one element for all of the last axes, which are a row then; others
// have one for each of a row's. Empty where no axes are so for all of them.
std::vector<bool> one_per_row(const module_graph& body, std::span<const dims> parameters) {
  if (parameters.empty() || body.outputs.empty()) return {};
  for (std::uint32_t i = 0; i < body.size(); ++i)
    if (body[i].kind == instruction_kind::op && body[i].op.kind() == op_kind::reduction) return {};
  const dims& all = body.shape_of(body.outputs.back()).lens;
  for (const value_id v : body.outputs)
    if (!(body.shape_of(v).lens == all)) return {};
  const auto ones_from = [](const dims& lens) {
    std::size_t d = lens.size();
    while (d > 0 && lens[d - 1] == dimension(1)) --d;
    return d;
  };
  std::size_t row = 0;
  for (const dims& lens : parameters) {
    if (lens.size() != all.size()) return {};
    if (const std::size_t d = ones_from(lens); d < all.size()) row = std::max(row, d);
  }
  std::vector<bool> repeated;
  for (const dims& lens : parameters) {
    repeated.push_back(row < all.size() && ones_from(lens) <= row);
    for (std::size_t d = row; d < all.size(); ++d)
      if (!repeated.back() && !(lens[d] == all[d])) return {};
  }
  return std::find(repeated.begin(), repeated.end(), true) == repeated.end() ? std::vector<bool>() : repeated;
}

class rows_kernel final : public kernel {
 public:
  rows_kernel(const module_graph& body, std::string name, std::span<const dims> parameters)
      : program_(body), name_(std::move(name)), pair_(find_pair_loop(body)) {
    const std::vector<bool> repeated = one_per_row(body, parameters);
    if (repeated.empty() || pair_.run) return;
    by_rows_ = std::make_unique<tile_program>(body, repeated);
    if (!by_rows_->blocks() || !by_rows_->blocks()->compiled()) by_rows_.reset();
  }
  std::string name() const override { return name_; }
  stride_support input_strides(std::size_t) const override { return stride_support::any; }
  stride_support output_strides(std::size_t) const override { return stride_support::any; }
  std::size_t scratch_bytes(std::span<const tensor> in, std::span<const tensor> out, unsigned threads) const override {
    return rows_scratch_bytes(program_for(loops_of(program_, in, out)), in, out, threads);
  }
  void run(const launch& l) const override {
    const row_loops loops = loops_of(program_, l.in, l.out);
    if (!pair_.run || !run_pairs(pair_, l, loops, task_elements(program_, elements_of(loops))))
      run_loops(program_for(loops), l, loops);
  }

 private:
  // Rows along which some operands repeat one element go by a program that reads it once a row, where they are short
  // and many or so long that to begin one takes little of its time.
  const tile_program& program_for(const row_loops& loops) const {
    constexpr std::int64_t shortest = 32, longer = 512;
    if (!by_rows_ || loops.folded.size() != 1 || loops.row() < shortest) return program_;
    for (std::size_t k = 0; k < loops.operand.size(); ++k) {
      const bool follows = k >= by_rows_->parameters() || by_rows_->full_parameter(k);
      if (loops.operand[k].folded[0] != (follows ? 1 : 0)) return program_;
    }
    return loops.row() >= longer || level_by_level(*by_rows_, loops) ? *by_rows_ : program_;
  }

  tile_program program_;
  std::unique_ptr<tile_program> by_rows_;  // or null
  std::string name_;
  pair_loop pair_;
};

}  // namespace

void run_rows(const tile_program& p, const launch& l) { run_loops(p, l, loops_of(p, l.in, l.out)); }

std::size_t rows_scratch_bytes(const tile_program& p, std::span<const tensor> in, std::span<const tensor> out,
                               unsigned threads) {
  const row_loops loops = loops_of(p, in, out);
  if (adjacent_rows(p, loops))
    return threads * (p.blocks()->scratch_bytes(loops.row(), p.blocks()->strip_for(loops.row())) + streams_bytes);
  if (cuts_rows(p, loops, threads)) return cut_rows_scratch_bytes(p, loops, threads);
  if (are_short_rows(p, loops, in, out)) return threads * short_rows_scratch_bytes(p, loops);
  if (const auto t = find_transposed(p, loops)) return threads * transposed_scratch_bytes(p, loops, *t);
  if (const auto e = joined_rows(p, loops)) return threads * expanded_scratch_bytes(p, loops, *e);
  if (level_by_level(p, loops)) return threads * batch_scratch_bytes(p, loops);
  return threads * p.scratch_bytes(loops.row());
}

std::unique_ptr<kernel> make_rows_kernel(const module_graph& body, std::string name, std::span<const dims> parameters) {
  return std::make_unique<rows_kernel>(body, std::move(name), parameters);
}

}  // namespace kiln::eigen
