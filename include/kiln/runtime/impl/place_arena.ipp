#include <algorithm>

#include "kiln/core/large_page.hpp"
#include "kiln/runtime/impl/executable_state.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln {

using detail::aligned;

// Offsets by liveness: storages in order of first use; each takes the lowest gap among those alive at the same time.
void executable::state::place_arena(workspace::state& w) const {
  const auto& storages = plan.storages;
  w.offsets.assign(storages.size(), 0);
  w.bases.assign(storages.size(), nullptr);
  w.live.clear();
  std::size_t end = 0;
  const auto bytes_of = [&](std::uint32_t s) {
    const std::int64_t bytes = w.sizes[storages[s].bytes_slot];
    if (bytes < 0 || bytes >> 46)  // sums of such sizes would wrap
      raise(errc::limit, "a value of a run has a size that memory can hold, found " + std::to_string(bytes) + " bytes");
    return aligned(static_cast<std::size_t>(bytes));
  };
  for (std::uint32_t s = 0; s < storages.size(); ++s)
    if (storages[s].kind == detail::place_kind::symbolic) {  // filled when bound, so never shared
      w.offsets[s] = end;
      end += bytes_of(s);
    }
  const std::size_t floor = end;
  // What a group touches is alive from the group's first step on, except where one branch alone comes to both.
  const detail::branch_choice& beside = w.beside;
  const auto begin = [&](std::uint32_t s) { return beside.begin[storages[s].first]; };
  const auto follows = [&](std::uint32_t s, std::uint32_t other) {
    return storages[other].last < storages[s].first && beside.first_owner[s] == beside.last_owner[other] &&
           beside.first_owner[s] < detail::branch_choice::several;
  };
  for (std::uint32_t s : plan.arena_order) {
    std::erase_if(w.live, [&](std::uint32_t other) { return storages[other].last < begin(s); });
    w.taken.clear();
    for (std::uint32_t other : w.live)
      if (!follows(s, other)) w.taken.emplace_back(w.offsets[other], w.offsets[other] + bytes_of(other));
    std::sort(w.taken.begin(), w.taken.end());
    std::size_t at = floor;
    for (const auto& [from, to] : w.taken) {
      if (at + bytes_of(s) <= from) break;
      at = std::max(at, to);
    }
    w.offsets[s] = at;
    end = std::max(end, at + bytes_of(s));
    w.live.push_back(s);
  }
  w.scratch_offset = end;
  w.scratch_bytes = w.scratch.empty() ? 0 : *std::max_element(w.scratch.begin(), w.scratch.end());
  for (const auto& g : beside.groups)
    w.scratch_bytes = std::max(w.scratch_bytes, std::min<std::size_t>(pool->size(), g.order.size()) * g.scratch);
  w.needed = end + aligned(w.scratch_bytes);
  if (w.where != where) {  // the workspace served another device, or the host
    w.arena = w.edges = w.faults = buffer();
    w.queue.reset();
    w.where = where;
  }
  w.recording.reset();
  w.recorded.clear();
  w.last.clear();
  // Whole 2 MiB pages: the rest behind the last whole one would lie in pages of 4 KiB.
  w.grow(w.arena, where || w.needed < large_page / 2 ? w.needed : whole_large_pages(w.needed));
  if (for_device) return bind_device(w);
  for (std::uint32_t s = 0; s < storages.size(); ++s) {
    const detail::storage& st = storages[s];
    if (st.kind == detail::place_kind::arena || st.kind == detail::place_kind::symbolic)
      w.bases[s] = w.arena.data() + w.offsets[s];
    else if (st.kind == detail::place_kind::constant)
      w.bases[s] = const_cast<std::byte*>(st.constant.bytes());  // kernels only read their inputs
    for (std::size_t n = 0; n < st.values.size(); ++n)
      encode(st.type, &w.sizes[st.values[n]], w.bases[s] + n * size_of(st.type), 1);
  }
}

}  // namespace kiln
