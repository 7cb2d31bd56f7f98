#include "kiln/backend/hip/impl/index/topk_plan.hpp"
#include "kiln/op/index/topk.hpp"

namespace kiln::hip {
namespace {

// How rows' best elements are found: rows of few by counting, few elements of others by selecting, else in tiles that a
// block sorts.
struct topk_plan {
  static constexpr std::int64_t few = 128, most_sorted = 2048;
  static constexpr int lanes = 256;
  gpu::topk_sizes sizes{};
  std::int64_t rows = 0, tile = 0, kept = 1;
  bool wide = false, selects = false;
  selection_plan selection;

  topk_plan(const op::topk& op, const tensor& in, const tensor& out)
      : topk_plan(in.type, axis_extents(in.lens, op.axis), axis_extents(out.lens, op.axis).extent) {}
  std::string entry() const { return wide ? "wide_entry" : "u64"; }
  topk_halves halves() const { return {sizes, rows}; }
  std::int64_t entry_bytes() const { return wide ? 16 : 8; }

 private:
  static bool needs_wide(dtype type, std::int64_t extent) {
    return type == dtype::f64 || type == dtype::i64 || type == dtype::u64 || extent >= (1ll << 32) - 1;
  }
  topk_plan(dtype type, const axis_extents& s, std::int64_t count)
      : wide(needs_wide(type, s.extent)), selection(s.outer, s.extent, s.inner, count, wide ? 16 : 8) {
    rows = count == 0 ? 0 : s.outer * s.inner;
    selects = s.extent > few && !selection.levels.empty();
    for (tile = 1; tile < s.extent && tile < most_sorted;) tile *= 2;
    while (kept < count && kept < tile) kept *= 2;
    sizes = {s.extent, s.inner, count, (s.extent + tile - 1) / tile, std::min(count, tile), 0, 0, 0};
  }
};

}  // namespace

std::vector<index_call> topk_calls(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const auto* t = op.get_if<op::topk>();
  const topk_plan plan(*t, in[0], out[0]);
  gpu::topk_sizes n = plan.sizes;
  if (plan.rows == 0) return {};
  const std::string type = name_of(in[0].type), greatest = t->largest ? "true" : "false", entry = plan.entry();
  const auto call = [&](std::string name, std::string text, const call_numbers& numbers, std::int64_t work, int lanes,
                        bool scratch) {
    index_call c{
        std::move(name), "reduce/select_least.hpp", {type, type, "i64"}, std::move(text), numbers, work, lanes};
    if (scratch) c.types.push_back(entry);
    return c;
  };
  constexpr int in_warp = 32;
  if (n.extent <= plan.few)
    return {call("topk", "best_of_short<" + greatest + ", " + std::to_string(in_warp) + ">(p1, p2, p0, n, row, lane)",
                 n, plan.rows, in_warp, false)};
  const auto list = [](auto... numbers) { return ((std::to_string(numbers) + ", ") + ...); };
  std::vector<index_call> calls;
  if (plan.selects) {
    const selection_plan& s = plan.selection;
    for (const selection_plan::level& l : s.levels) {
      const bool first = calls.empty(), scratch = s.levels.size() > 1;
      const std::string sizes =
          first ? greatest + ", " + list(s.kept, s.room, s.rows, s.lanes) : list(s.kept, s.room, s.lanes);
      calls.push_back(call(first ? "topk_parts" : "topk_runs",
                           (first ? "select_part<" : "select_runs<") + sizes + entry + ">(p1, p2, " +
                               (scratch ? "p3" : "nullptr") + ", p0, n, row, lane)",
                           l.sizes, l.blocks, s.lanes, scratch));
    }
    return calls;
  }
  const std::string sorts = greatest + ", " + list(plan.tile, plan.kept, plan.lanes) + entry;
  if (n.runs == 1)
    return {call("topk", "best_of_row<" + sorts + ">(p1, p2, p0, n, row, lane)", n, plan.rows, plan.lanes, false)};
  calls.push_back(
      call("topk_tiles", "best_of_tile<" + sorts + ">(p3, p0, n, row, lane)", n, plan.rows * n.runs, plan.lanes, true));
  n.to = plan.halves().first;
  while (n.runs > 1) {
    n.kept = std::min(2 * n.length, n.count);
    const std::int64_t pairs = (n.runs + 1) / 2;
    calls.push_back(call("topk_merge", "merge_runs(p3, n, at)", n, plan.rows * pairs * 2 * n.length, 0, true));
    n.runs = pairs, n.length = n.kept;
    std::swap(n.from, n.to);
  }
  calls.push_back(call("topk_write", "write_best(p1, p2, p0, p3, n, at)", n, plan.rows * n.count, 0, true));
  return calls;
}

std::size_t topk_room(const operation& op, std::span<const tensor> in, std::span<const tensor> out) {
  const topk_plan plan(*op.get_if<op::topk>(), in[0], out[0]);
  std::int64_t entries = 0;
  if (plan.selects)
    entries = plan.selection.entries;
  else if (plan.sizes.runs > 1)
    entries = plan.halves().first + plan.halves().second;
  return static_cast<std::size_t>(entries * plan.entry_bytes());
}

}  // namespace kiln::hip
