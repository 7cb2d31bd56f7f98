#include <algorithm>
#include <cstring>
#include <utility>

#include "kiln/backend/eigen/impl/pointwise/tile_memory.hpp"
#include "kiln/backend/eigen/impl/rows/row_walk.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::eigen {
namespace {

// What `spread_function` may write past its last element.
constexpr std::size_t slack = 64;

// Whether an operand's elements follow one another through the kept dims from `dim` on and the row.
bool is_dense(const row_loops& loops, const row_loops::steps& o, std::size_t dim) {
  std::int64_t next = loops.row();
  if (o.folded[0] != 1) return false;
  for (std::size_t d = loops.kept.size(); d-- > dim; next *= loops.kept[d])
    if (o.kept[d] != next) return false;
  return true;
}
bool has_dense_results(const tile_program& p, const row_loops& loops, std::size_t dim) {
  for (std::size_t k = p.parameters(); k < loops.operand.size(); ++k)
    if (!is_dense(loops, loops.operand[k], dim)) return false;
  return true;
}

std::size_t piece_bytes(const expanded_operands& e, dtype type) {
  return padded_bytes(static_cast<std::size_t>(e.steps * e.inner) * size_of(type)) + slack;
}

// Copies of the first `bytes` one after another, until all of `count`.
void repeat_first(std::byte* first, std::int64_t bytes, std::int64_t count) {
  for (std::int64_t done = 1; done < count;) {
    const std::int64_t more = std::min(done, count - done);
    std::memcpy(first + done * bytes, first, static_cast<std::size_t>(more * bytes));
    done += more;
  }
}

// `count` steps of kept dim `d` of an operand, with all that is inside of them, one element after another.
void expand(const row_loops& loops, const row_loops::steps& o, dtype type, std::size_t d, std::int64_t count,
            const std::byte* from, std::byte* to) {
  const std::size_t width = size_of(type);
  const std::int64_t step = o.kept[d] * static_cast<std::int64_t>(width), row = loops.row();
  if (d + 1 == loops.kept.size() && o.folded[0] == 0)
    return kiln_eigen_typed_tiles()->spread(width)(from, o.kept[d], to, count, row);
  std::int64_t inner = row * static_cast<std::int64_t>(width);
  for (std::size_t k = d + 1; k < loops.kept.size(); ++k) inner *= loops.kept[k];
  for (std::int64_t i = 0; i < (step == 0 ? 1 : count); ++i) {
    if (d + 1 == loops.kept.size())
      copy_elements(width, from + i * step, o.folded[0], to + i * inner, 1, row);
    else
      expand(loops, o, type, d + 1, loops.kept[d + 1], from + i * step, to + i * inner);
  }
  if (step == 0) repeat_first(to, inner, count);
}

// The inverse, of a result.
void scatter_rows(const row_loops& loops, const row_loops::steps& o, dtype type, std::size_t d, std::int64_t count,
                  const std::byte* from, std::byte* to) {
  const std::size_t width = size_of(type);
  const std::int64_t step = o.kept[d] * static_cast<std::int64_t>(width), row = loops.row();
  std::int64_t inner = row * static_cast<std::int64_t>(width);
  for (std::size_t k = d + 1; k < loops.kept.size(); ++k) inner *= loops.kept[k];
  for (std::int64_t i = 0; i < count; ++i, from += inner, to += step)
    if (d + 1 == loops.kept.size())
      copy_elements(width, from, 1, to, o.folded[0], row);
    else
      scatter_rows(loops, o, type, d + 1, loops.kept[d + 1], from, to);
}

// A worker's run over consecutive pieces.
class piece_walk {
 public:
  piece_walk(const tile_program& p, const launch& l, const row_loops& loops, const expanded_operands& e,
             std::byte* scratch)
      : loops_(loops),
        e_(e),
        results_(p.results()),
        cursor_(p, take(scratch, p.scratch_bytes(e.steps * e.inner)), e.steps * e.inner) {
    constexpr std::int64_t distance = 4096, cached = 1 << 18;
    cursor_.past_cache(l.unread && has_dense_results(p, loops, e.dim));
    cursor_.fetch_rows(false);
    for (std::size_t k = 0; k < loops.operand.size(); ++k) {
      const tensor& t = operand_of(l, k);
      tile_program::stream& s = k < l.in.size() ? cursor_.parameter(k) : cursor_.result(k - l.in.size());
      s.step = 1;
      operand o{&t, &s, nullptr, nullptr, 0, nullptr};
      if (!is_dense(loops, loops.operand[k], e.dim)) {
        o.expanded = take(scratch, piece_bytes(e, t.type));
      } else if (loops.rows() * loops.row() * static_cast<std::int64_t>(size_of(t.type)) > cached &&
                 !(l.unread && k >= l.in.size())) {
        cursor_.fetch_ahead(k, distance);
      }
      operands_.push_back(o);
    }
  }

  void run(std::int64_t first, std::int64_t last) {
    const std::int64_t extent = loops_.kept[e_.dim], cuts = e_.cuts(loops_);
    for (std::int64_t piece = first; piece < last; ++piece) {
      const std::int64_t begin = piece % cuts * e_.steps, count = std::min(e_.steps, extent - begin);
      for (std::size_t k = 0; k < operands_.size(); ++k) {
        operand& o = operands_[k];
        const row_loops::steps& s = loops_.operand[k];
        std::int64_t offset = begin * s.kept[e_.dim], rest = piece / cuts;
        for (std::size_t d = e_.dim; d-- > 0; rest /= loops_.kept[d]) offset += rest % loops_.kept[d] * s.kept[d];
        std::byte* const at = o.of->data + offset * static_cast<std::int64_t>(size_of(o.of->type));
        o.at->at = o.expanded ? o.expanded : at;
        const bool written = k >= loops_.operand.size() - results_;
        if (written && o.expanded) o.to = at;
        if (written || !o.expanded || (o.from == at && o.count >= count)) continue;
        expand(loops_, s, o.of->type, e_.dim, count, at, o.expanded);
        o.from = at, o.count = count;
      }
      const std::int64_t n = count * e_.inner;
      cursor_.begin_row();
      cursor_.run(0, 0, n);
      cursor_.end_level(0, n);
      for (std::size_t k = operands_.size() - results_; k < operands_.size(); ++k)
        if (const operand& o = operands_[k]; o.expanded)
          scatter_rows(loops_, loops_.operand[k], o.of->type, e_.dim, count, o.expanded, o.to);
    }
  }

 private:
  struct operand {
    const tensor* of;
    tile_program::stream* at;
    std::byte* expanded;    // a piece of it, or null where it is dense
    const std::byte* from;  // of what the piece is now, and of how many steps
    std::int64_t count;
    std::byte* to;  // where the piece of a result goes
  };
  static std::byte* take(std::byte*& scratch, std::size_t bytes) { return std::exchange(scratch, scratch + bytes); }

  const row_loops& loops_;
  const expanded_operands& e_;
  std::size_t results_;
  tile_program::cursor cursor_;
  stack_list<operand, row_loops::most_operands> operands_;
};

}  // namespace

std::optional<expanded_operands> find_expanded(const tile_program& p, const row_loops& loops, bool scatters) {
  constexpr std::int64_t longest = 1024, most = 2048, least = 768, aligned = 16, cached = 6144, few = 64;
  if (p.reduces() || loops.folded.size() != 1 || loops.rows() == 0 || loops.row() == 0 || loops.row() > longest)
    return {};
  for (std::size_t k = 0; k < p.parameters(); ++k)
    if (!p.full_parameter(k)) return {};
  expanded_operands e{loops.kept.size(), loops.row(), 0};
  const auto join = [&](bool dense) {
    while (e.dim > 0 && (!dense || has_dense_results(p, loops, e.dim - 1))) {
      const std::int64_t inner = e.dim < loops.kept.size() ? e.inner * loops.kept[e.dim] : e.inner;
      if (inner > longest) break;
      e.inner = inner;
      --e.dim;
    }
  };
  join(true);
  if (e.dim == loops.kept.size() && scatters && loops.row() <= few) join(false);
  if (e.dim == loops.kept.size()) return {};
  const std::int64_t extent = loops.kept[e.dim];
  // what is written out stays in L1, beside the results
  std::int64_t expanded = 1;
  for (std::size_t k = 0; k < loops.operand.size(); ++k) expanded += !is_dense(loops, loops.operand[k], e.dim);
  const std::int64_t elements = std::clamp(cached / expanded, least, most);
  e.steps = std::max<std::int64_t>(2, elements / e.inner);
  if (e.steps >= aligned / 2) e.steps = (e.steps + aligned / 2) / aligned * aligned;  // pieces begin at whole lines
  e.steps = std::min(e.steps, extent);
  return e.steps * e.inner > loops.row() ? std::optional(e) : std::nullopt;
}

std::size_t expanded_scratch_bytes(const tile_program& p, const row_loops& loops, const expanded_operands& e) {
  std::size_t bytes = p.scratch_bytes(e.steps * e.inner);
  for (std::size_t k = 0; k < loops.operand.size(); ++k)
    if (!is_dense(loops, loops.operand[k], e.dim)) bytes += piece_bytes(e, dtype::f64);
  return bytes;
}

void run_expanded(const tile_program& p, const launch& l, const row_loops& loops, const expanded_operands& e) {
  const std::int64_t pieces = loops.rows() / loops.kept[e.dim] * e.cuts(loops);
  std::int64_t inside = 1;
  for (std::size_t d = e.dim + 1; d < loops.kept.size(); ++d) inside *= loops.kept[d];
  const std::int64_t all = pieces / inside,
                     some = std::max<std::int64_t>(1, 2 * task_elements(p) / (e.steps * e.inner));
  const std::int64_t tasks = std::min(all, balanced((all + some - 1) / some, l.pool->size()));
  const std::size_t each = expanded_scratch_bytes(p, loops, e);
  const auto body = [&](std::int64_t task, unsigned worker) {
    piece_walk(p, l, loops, e, l.scratch.data() + worker * each).run(task * all / tasks, (task + 1) * all / tasks);
  };
  if (tasks == 1)
    body(0, 0);
  else
    l.pool->parallel_for(tasks, body);
}

}  // namespace kiln::eigen
