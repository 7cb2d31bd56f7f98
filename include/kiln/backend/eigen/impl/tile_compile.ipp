#include <algorithm>

#include "kiln/backend/eigen/block_program.hpp"
#include "kiln/core/large_page.hpp"

namespace kiln::eigen {
namespace {

dtype compute_dtype(dtype t) {
  return visit_compute(t, []<class T>(type_tag<T>) { return dtype_of<T>; });
}

std::size_t width_of(dtype t) { return size_of(compute_dtype(t)); }

bool has_reduction(const module_graph& body) {
  for (std::uint32_t i = 0; i < body.size(); ++i)
    if (body[i].kind == instruction_kind::op && body[i].op.kind() == op_kind::reduction) return true;
  return false;
}

}  // namespace

tile_program::tile_program(const module_graph& body) {
  compile(body);
  place_slots();
  blocks_ = block_program::make(*this);
}

tile_program::~tile_program() = default;

// A full call reads a scalar through a tile of repeats.
std::uint32_t tile_program::full_operand(std::uint32_t v, std::vector<std::int64_t>& repeats) {
  if (!values_[v].scalar) return v;
  repeats.resize(values_.size(), -1);
  if (repeats[v] >= 0) return static_cast<std::uint32_t>(repeats[v]);
  value tile;
  tile.type = values_[v].type;
  tile.level = values_[v].level;
  const auto id = static_cast<std::uint32_t>(values_.size());
  if (values_[v].from == source::constant) {
    tile.from = source::constant;
    tile.constant = values_[v].constant;
    values_.push_back(std::move(tile));
  } else {
    // a repeat is made at every level that reads it, so it is never kept
    values_.push_back(std::move(tile));
    call c;
    c.kind = call::what::repeat;
    c.in.push_back(v);
    c.out = id;
    c.compute = c.natural = compute_dtype(values_[v].type);
    c.level = values_[v].level;
    calls_.push_back(std::move(c));
  }
  repeats[v] = id;
  return id;
}

void tile_program::compile(const module_graph& body) {
  const isa_table& isa = *kiln_eigen_isa();
  const bool reduces = reduces_ = has_reduction(body);
  dims reduced;
  for (std::uint32_t i = 0; reduces && i < body.size(); ++i) {
    if (body[i].kind != instruction_kind::op || body[i].op.kind() != op_kind::reduction) continue;
    const dims& full = body.shape_of(body[i].inputs[0]).lens;
    const auto on = reduced_dims(body[i].op.axes(), full.size()).value();
    if (!folded_.empty() && !std::equal(folded_.begin(), folded_.end(), on.begin(), on.end()))
      raise(errc::internal, "the reductions of a fused body fold the same axes");
    folded_.assign(on.begin(), on.end());
    reduced = body[i].results[0].lens;
    if (full == reduced) reduced = {};  // rows of one element: everything may count as full
  }
  const auto is_scalar = [&](const shape& s) { return reduces && !reduced.empty() && s.lens == reduced; };

  std::vector<std::uint32_t> of(body.size());
  std::vector<std::int64_t> repeats;
  for (std::uint32_t i = 0; i < body.size(); ++i) {
    const auto& ins = body[i];
    value v;
    v.type = ins.results[0].type;
    const auto id = [&] { return static_cast<std::uint32_t>(values_.size()); };
    if (ins.kind == instruction_kind::parameter) {
      v.from = source::parameter;
      v.scalar = is_scalar(ins.results[0]);
      v.index = static_cast<std::uint32_t>(parameters_.size());
      parameters_.push_back(of[i] = id());
      values_.push_back(std::move(v));
      continue;
    }
    if (ins.kind == instruction_kind::literal) {
      if (ins.constant.elements() != 1) raise(errc::internal, "a constant inside a fused body has one element");
      v.from = source::constant;
      v.scalar = true;
      v.constant = argument(ins.constant).to_literal();
      of[i] = id();
      values_.push_back(std::move(v));
      continue;
    }
    if (ins.op.kind() == op_kind::view) {  // repeats a scalar, or renames dims
      of[i] = of[ins.inputs[0].instruction];
      continue;
    }
    call c;
    c.op = ins.op;
    if (ins.op.kind() == op_kind::reduction) {
      const std::uint32_t in = full_operand(of[ins.inputs[0].instruction], repeats);
      c.kind = call::what::fold;
      c.in.push_back(in);
      c.compute = c.natural = compute_dtype(values_[in].type);
      c.level = values_[in].level;
      if (c.compute == dtype::f32 && ins.op.table().index < default_registry::size)
        c.float_fold = isa.fold(ins.op.table().index);
      v.scalar = true;
      v.level = c.level + 1;
    } else if (ins.op.kind() == op_kind::pointwise) {
      bool scalar = reduces;  // without rows nothing is one element a row
      for (value_id in : ins.inputs) scalar = scalar && values_[of[in.instruction]].scalar;
      for (value_id in : ins.inputs) {
        const std::uint32_t operand = of[in.instruction];
        c.in.push_back(scalar ? operand : full_operand(operand, repeats));
        c.level = std::max(c.level, values_[operand].level);
      }
      const auto typed = static_cast<std::size_t>(ins.op.info().conditions);
      c.compute = compute_dtype(values_[c.in[typed]].type);
      c.natural = ins.op.info().returns_bool ? dtype::boolean : c.compute;
      if (c.compute == dtype::f32 && ins.op.table().index < default_registry::size)
        c.float_tile = isa.tile(ins.op.table().index);
      c.scalar = scalar;
      v.scalar = scalar;
      v.level = c.level;
    } else {
      raise(errc::internal,
            "a fused body holds pointwise ops, reductions and broadcasts; found " + std::string(ins.op.name()));
    }
    c.out = of[i] = id();
    values_.push_back(std::move(v));
    calls_.push_back(std::move(c));
  }
  for (value_id out : body.outputs) {
    std::uint32_t v = of[out.instruction];
    // a scalar that is asked for as a full value is repeated
    if (values_[v].scalar && !(reduces && (reduced.empty() || is_scalar(body.shape_of(out)))))
      v = full_operand(v, repeats);
    if (values_[v].from == source::computed && values_[v].result < 0)
      values_[v].result = static_cast<std::int32_t>(results_.size());
    results_.push_back(v);
  }
}

void tile_program::place_slots() {
  levels_ = 1;
  for (const call& c : calls_)
    if (!c.scalar && c.kind != call::what::repeat) levels_ = std::max(levels_, c.level + 1);
  for (std::uint32_t v : results_)
    if (!values_[v].scalar) levels_ = std::max(levels_, values_[v].level + 1);

  // a repeat moves to the level that reads it; read at several, it is filled at the first and its tile stays
  loads_.resize(static_cast<std::size_t>(levels_));
  std::vector<std::size_t> last(values_.size(), 0);
  for (std::size_t k = 0; k < calls_.size(); ++k)
    for (std::uint32_t in : calls_[k].in) {
      value& v = values_[in];
      last[in] = k;
      const int level = calls_[k].level;
      if (calls_[k].scalar || v.scalar) continue;
      if (v.from == source::computed && level > v.level) v.kept = true;
      auto& loads = loads_[static_cast<std::size_t>(level)];
      if (v.from == source::parameter && std::find(loads.begin(), loads.end(), in) == loads.end()) loads.push_back(in);
    }
  for (std::uint32_t v : results_) {
    last[v] = calls_.size();
    auto& loads = loads_.back();
    if (values_[v].from == source::parameter && std::find(loads.begin(), loads.end(), v) == loads.end())
      loads.push_back(v);
    if (values_[v].from == source::computed && values_[v].level + 1 < levels_ && !values_[v].scalar)
      values_[v].kept = true;
  }
  for (const value& v : values_) width_ = std::max(width_, width_of(v.type));
  // tiles are reused once their last reader has run; calls of one level run in this order
  std::vector<std::uint32_t> free;
  const auto take = [&] {
    if (free.empty()) return slots_++;
    const std::uint32_t s = free.back();
    free.pop_back();
    return s;
  };
  for (std::uint32_t v = 0; v < values_.size(); ++v)
    if (values_[v].from != source::computed && !values_[v].scalar) values_[v].slot = slots_++;
  for (std::size_t k = 0; k < calls_.size(); ++k) {
    value& out = values_[calls_[k].out];
    if (!out.scalar && !out.kept) out.slot = take();
    for (std::uint32_t in : calls_[k].in) {
      value& v = values_[in];
      // levels interleave in `calls_`, so only a reader of the same level may pass a tile on
      if (v.from == source::computed && !v.scalar && !v.kept && last[in] == k && levels_ == 1 && in != calls_[k].out) {
        bool listed = false;
        for (std::uint32_t s : free) listed = listed || s == v.slot;
        if (!listed) free.push_back(v.slot);
      }
    }
  }
}

std::size_t tile_program::scratch_bytes(std::int64_t row) const {
  const std::size_t streams = padded_bytes((parameters_.size() + results_.size()) * sizeof(stream));
  if (blocks_) return streams + padded_bytes(sizeof(block_cursor)) + blocks_->scratch_bytes(row, 0);
  std::size_t n = streams + 2 * padded_bytes(values_.size() * sizeof(std::byte*)) +
                  (slots_ + 1) * padded_bytes(static_cast<std::size_t>(std::min(tile, row)) * width_);
  for (const value& v : values_) {
    if (v.scalar)
      n += 64;
    else if (v.kept)
      n += padded_bytes(static_cast<std::size_t>(row) * width_);
  }
  return n;
}

}  // namespace kiln::eigen
