#include <algorithm>

#include "kiln/lower/arena.hpp"
#include "kiln/runtime/impl/run/planned_program.hpp"

namespace kiln::detail {
namespace {

// The arena's buffers with the sizes of a run, some of whose steps run side by side.
struct bound_buffers {
  const plan& of;
  run_memory& w;

  std::int64_t bytes(std::uint32_t b) const { return static_cast<std::int64_t>(w.room[b]); }
  std::size_t& offset(std::uint32_t b) const { return w.offsets[b]; }
  // What a group of branches touches is in use from the group's first step on, except where one branch alone touches
  // both, one after the other.
  bool meet(std::uint32_t a, std::uint32_t b) const {
    const auto begin = [&](std::uint32_t x) { return w.beside.begin[of.buffers[x].first]; };
    return of.buffers[b].last >= begin(a) && of.buffers[a].last >= begin(b) && !follows(a, b) && !follows(b, a);
  }

 private:
  bool follows(std::uint32_t later, std::uint32_t earlier) const {
    return of.buffers[earlier].last < of.buffers[later].first &&
           w.beside.first_owner[later] == w.beside.last_owner[earlier] &&
           w.beside.first_owner[later] < branch_choice::several;
  }
};

bool is_placed(const planned_buffer& b) { return b.kind == lower::memory::arena || b.kind == lower::memory::symbolic; }
std::size_t bytes_of(const planned_buffer& b, const run_memory& w) {
  const std::int64_t n = w.sizes[b.bytes_slot];
  if (n < 0 || n >> 46)  // sums of such sizes would wrap
    raise(errc::limit, "a value of a run has a size that memory can hold, found " + std::to_string(n) + " bytes");
  return aligned(static_cast<std::size_t>(n));
}

}  // namespace

// A sequence grows by a token from run to run: what fits is not placed again.
bool fits_placement(const plan& p, const run_memory& w) {
  std::size_t used = 0, all = 0;
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    if (!is_placed(p.buffers[b])) continue;
    const std::size_t n = bytes_of(p.buffers[b], w);
    if (n > w.room[b]) return false;
    used += n;
    all += w.room[b];
  }
  return used >= all / 2;
}

void place_arena(const plan& p, run_memory& w, unsigned threads, bool spare) {
  w.room.assign(p.buffers.size(), 0);
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    if (!is_placed(p.buffers[b])) continue;
    const std::size_t n = bytes_of(p.buffers[b], w);
    const bool varies = spare && w.before[p.buffers[b].bytes_slot] != w.sizes[p.buffers[b].bytes_slot];
    w.room[b] = varies ? aligned(n + n / 8) : n;
  }
  w.offsets.assign(p.buffers.size(), 0);
  const bound_buffers bound{p, w};
  std::int64_t floor = 0;
  for (std::uint32_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].kind == lower::memory::symbolic) {  // filled when bound, so never shared
      w.offsets[b] = static_cast<std::size_t>(floor);
      floor += bound.bytes(b);
    }
  w.arena_order = p.arena_order;
  w.scratch_offset = static_cast<std::size_t>(lower::place_arena(w.arena_order, bound, floor));
  w.scratch_bytes = w.scratch.empty() ? 0 : *std::max_element(w.scratch.begin(), w.scratch.end());
  for (const auto& g : w.beside.groups)
    w.scratch_bytes = std::max(w.scratch_bytes, std::min<std::size_t>(threads, g.order.size()) * g.scratch);
  w.needed = w.scratch_offset + aligned(w.scratch_bytes);
}

}  // namespace kiln::detail
