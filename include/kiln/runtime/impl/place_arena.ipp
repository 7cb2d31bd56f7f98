#include <algorithm>

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
  // What a group touches is alive from the group's first step on.
  const auto begin = [&](std::uint32_t s) { return w.beside.begin[storages[s].first]; };
  for (std::uint32_t s : plan.arena_order) {
    std::erase_if(w.live, [&](std::uint32_t other) { return storages[other].last < begin(s); });
    w.taken.clear();
    for (std::uint32_t other : w.live) w.taken.emplace_back(w.offsets[other], w.offsets[other] + bytes_of(other));
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
  w.scratch_bytes = w.branch_scratch = 0;
  const auto scratch_of = [&](std::size_t i) {
    const detail::step& st = plan.steps[i];
    const std::span<const tensor> all(w.tensors.data() + st.first_operand, st.inputs + st.outputs);
    return aligned(st.run->scratch_bytes(all.first(st.inputs), all.subspan(st.inputs), pool->size()));
  };
  for (std::size_t i = 0; i < plan.steps.size(); ++i) w.scratch_bytes = std::max(w.scratch_bytes, scratch_of(i));
  std::size_t at_once = 0;
  for (const auto& g : w.beside.groups) {
    for (std::uint32_t i = g.of->first; i < g.of->last; ++i)
      w.branch_scratch = std::max(w.branch_scratch, scratch_of(i));
    at_once = std::max(at_once, std::min<std::size_t>(pool->size(), g.order.size()));
  }
  w.scratch_bytes = std::max(w.scratch_bytes, at_once * w.branch_scratch);
  w.needed = end + aligned(w.scratch_bytes);
  if (w.where != where) {  // the workspace served another device, or the host
    w.arena = w.edges = w.faults = buffer();
    w.queue.reset();
    w.where = where;
  }
  w.recording.reset();
  w.recorded.clear();
  w.last.clear();
  w.grow(w.arena, w.needed);
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
