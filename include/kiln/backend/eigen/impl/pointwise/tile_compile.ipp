#include <algorithm>
#include <map>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/core/huge_page.hpp"
#include "kiln/lower/row_body.hpp"

namespace kiln::eigen {

tile_program::tile_program(const module_graph& body, const std::vector<bool>& one_per_row) {
  compile(body, one_per_row);
  compute_integers_in_floats();
  // blocks are floats: what has none is computed in its own types
  if (has_floats() || !compute_in_storage_types(true))
    if (blocks_ = block_program::make(*this); !blocks_) compute_in_storage_types(false);
  find_slots();
  list_work();
}

tile_program::~tile_program() = default;

std::uint32_t tile_program::add_value(value v) {
  values_.push_back(std::move(v));
  return static_cast<std::uint32_t>(values_.size() - 1);
}

// A full call reads a value of one element per row through a tile that repeats it.
std::uint32_t tile_program::full_operand(std::uint32_t v, int level) {
  if (values_[v].full) return v;
  const bool constant = values_[v].from == source::constant;
  for (const repetition& r : repetitions_)
    if (r.value == v && (constant || r.level == level)) return r.tile;
  value tile;
  tile.type = values_[v].type;
  tile.level = level;
  if (constant) {
    tile.from = source::constant;
    tile.constant = values_[v].constant;
  }
  const std::uint32_t id = add_value(std::move(tile));
  repetitions_.push_back({v, level, id});
  if (constant) return id;
  call c;
  c.kind = call::what::repeat;
  c.in.push_back(v);
  c.out = id;
  c.compute = c.natural = held(values_[v].type);
  c.level = level;
  calls_.push_back(std::move(c));
  return id;
}

std::uint32_t tile_program::add_fold(const operation& op, std::uint32_t in, value made) {
  call c;
  c.op = op;
  c.kind = call::what::fold;
  c.level = made.level - 1;
  c.in.push_back(full_operand(in, c.level));
  c.compute = c.natural = held(values_[in].type);
  if (c.compute == dtype::f32 && op.table().index < default_registry::size)
    c.float_fold = kiln_eigen_isa()->fold(op.table().index);
  c.out = add_value(std::move(made));
  calls_.push_back(std::move(c));
  return calls_.back().out;
}

// [pointwise]
std::uint32_t tile_program::add_pointwise(const operation& op, std::span<const std::uint32_t> in, value made) {
  call c;
  c.op = op;
  c.level = made.level;
  c.per_row = !made.full;
  for (std::uint32_t v : in) c.in.push_back(made.full ? full_operand(v, c.level) : v);
  c.compute = held(values_[c.in[static_cast<std::size_t>(op.info().conditions)]].type);
  c.natural = op.info().returns_bool ? dtype::boolean : c.compute;
  if (c.compute == dtype::f32 && op.table().index < default_registry::size)
    c.tile = kiln_eigen_isa()->tile(op.table().index);
  c.out = add_value(std::move(made));
  calls_.push_back(std::move(c));
  return calls_.back().out;
}

// [/pointwise]

void tile_program::compile(const module_graph& body, const std::vector<bool>& one_per_row) {
  auto rows = lower::find_row_body(body, lower::row_results::at_last_level);
  if (!rows) raise(errc::internal, "a fused body holds pointwise ops, broadcasts and reductions over one set of axes");
  for (auto& v : rows->values)
    if (v.op == lower::row_op::parameter && !one_per_row.empty()) v.full = !one_per_row[v.index];
  for (auto& v : rows->values)
    if (v.op == lower::row_op::view) v.full = rows->values[v.source].full;
  reduces_ = rows->reduces;
  folded_ = rows->folded;
  levels_ = rows->levels;
  // What fits no cache is computed again: to write it and to read it takes longer.
  constexpr std::int64_t longest_kept = 1 << 18;
  const dimension row_elements = rows->row_elements();
  const bool keeps = !row_elements.is_constant() || row_elements.value() <= longest_kept;
  std::vector<std::uint32_t> of(body.size());
  std::map<std::pair<std::uint32_t, int>, std::uint32_t> made;
  // An operand where level `level` reads it: what is not kept is computed at the levels that read it, and only there.
  const auto operand = [&](const auto& self, std::uint32_t i, int level) -> std::uint32_t {
    const auto& row = rows->values[i];
    if (keeps || row.op != lower::row_op::pointwise || !row.full) return of[row.source];
    if (const auto found = made.find({i, level}); found != made.end()) return found->second;
    std::vector<std::uint32_t> in;
    for (std::uint32_t k : row.in) in.push_back(self(self, k, level));
    value v;
    v.type = body[i].results[0].type;
    v.level = level;
    return made[{i, level}] = add_pointwise(body[i].op, in, std::move(v));
  };
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    const auto& row = rows->values[i];
    if (!keeps && row.op == lower::row_op::pointwise && row.full) continue;
    value v;
    v.type = body[i].results[0].type;
    v.full = row.full;
    v.level = row.level;
    v.kept = row.kept && keeps;
    v.index = row.index;
    std::vector<std::uint32_t> in;
    const int reader = row.op == lower::row_op::reduction ? row.level - 1 : row.level;
    for (std::uint32_t k : row.in)
      in.push_back(row.full || row.op == lower::row_op::reduction ? operand(operand, k, reader) : of[k]);
    switch (row.op) {
      case lower::row_op::parameter:
        v.from = source::parameter;
        parameters_.push_back(of[i] = add_value(std::move(v)));
        break;
      case lower::row_op::literal:
        v.from = source::constant;
        v.constant = argument(body[i].constant).to_literal();
        of[i] = add_value(std::move(v));
        break;
      case lower::row_op::view: of[i] = of[row.source]; break;
      case lower::row_op::pointwise: of[i] = add_pointwise(body[i].op, in, std::move(v)); break;
      case lower::row_op::reduction: of[i] = add_fold(body[i].op, in[0], std::move(v));
    }
  }
  for (const auto& r : rows->results) {
    const std::uint32_t v = r.full ? full_operand(operand(operand, r.value, r.level), r.level) : of[r.value];
    if (values_[v].from == source::computed && values_[v].result < 0)
      values_[v].result = static_cast<std::int32_t>(results_.size());
    results_.push_back(v);
  }
  loads_.resize(static_cast<std::size_t>(levels_));
  for (int level = 0; level < levels_; ++level) {
    const auto needed = rows->needed(level, keeps);
    for (std::uint32_t i : rows->parameters)
      if (needed[i] && rows->values[i].full) loads_[static_cast<std::size_t>(level)].push_back(of[i]);
  }
}

void tile_program::find_slots() {
  std::vector<std::size_t> last(values_.size(), 0);
  for (std::size_t k = 0; k < calls_.size(); ++k)
    for (std::uint32_t in : calls_[k].in) last[in] = k;
  for (std::uint32_t v : results_) last[v] = calls_.size();
  for (value& v : values_) {
    v.held = held(v.type);
    width_ = std::max(width_, size_of(v.held));
  }
  // What a conversion makes for the result alone is stored as it is made.
  std::vector<bool> read(values_.size(), false);
  for (const call& c : calls_)
    for (const std::uint32_t in : c.in) read[in] = true;
  for (call& c : calls_) {
    value& out = values_[c.out];
    if (!c.convert || read[c.out] || out.kept || out.held == out.type) continue;
    const convert_function stored = kiln_eigen_typed_tiles()->convert(values_[c.in[0]].held, out.type);
    if (!stored) continue;
    c.convert = stored, c.round = nullptr;
    out.held = out.type;
  }
  // tiles are reused after their last reader; calls of one level run in this order
  std::vector<std::uint32_t> free;
  const auto take = [&] {
    if (free.empty()) return slots_++;
    const std::uint32_t s = free.back();
    free.pop_back();
    return s;
  };
  for (std::uint32_t v = 0; v < values_.size(); ++v)
    if (values_[v].from != source::computed && values_[v].full) values_[v].slot = slots_++;
  for (std::size_t k = 0; k < calls_.size(); ++k) {
    value& out = values_[calls_[k].out];
    if (out.full && !out.kept) out.slot = take();
    for (std::uint32_t in : calls_[k].in) {
      value& v = values_[in];
      // levels interleave in `calls_`, so only a reader of the same level may pass a tile on
      if (v.from == source::computed && v.full && !v.kept && last[in] == k && levels_ == 1 && in != calls_[k].out) {
        bool listed = false;
        for (std::uint32_t s : free) listed = listed || s == v.slot;
        if (!listed) free.push_back(v.slot);
      }
    }
  }
}

void tile_program::list_work() {
  work_.resize(static_cast<std::size_t>(levels_) + 1);
  for (std::uint32_t k = 0; k < calls_.size(); ++k) {
    const call& c = calls_[k];
    level_work& work = work_[static_cast<std::size_t>(c.level)];
    (c.per_row ? work.per_row : work.calls).push_back(k);
    if (c.kind == call::what::fold) work.folds.push_back(k);
  }
  for (std::uint32_t v = 0; v < values_.size(); ++v)
    if (values_[v].full && values_[v].from == source::computed && (values_[v].kept || values_[v].result >= 0))
      placed_.push_back(v);
}

std::size_t tile_program::scratch_bytes(std::int64_t row) const {
  const std::size_t streams = padded_bytes((parameters_.size() + results_.size()) * sizeof(stream));
  if (blocks_) return streams + padded_bytes(sizeof(block_cursor)) + blocks_->scratch_bytes(row, 0);
  std::size_t n =
      streams + 2 * padded_bytes(values_.size() * sizeof(std::byte*)) +
      padded_bytes(values_.size() * sizeof(cursor::repetition_run)) +
      (slots_ + 1) * padded_bytes(static_cast<std::size_t>(std::clamp<std::int64_t>(row, 1, tile())) * width_);
  for (const value& v : values_) {
    if (!v.full)
      n += 64;
    else if (v.kept)
      n += padded_bytes(static_cast<std::size_t>(row) * width_);
  }
  return n;
}

}  // namespace kiln::eigen
