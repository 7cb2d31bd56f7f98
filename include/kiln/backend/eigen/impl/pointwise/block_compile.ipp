#include <algorithm>

#include "kiln/backend/eigen/impl/pointwise/block_compiler.hpp"

namespace kiln::eigen {

const kernels::pointwise_steps* block_compiler::steps_of(const call& c) const {
  const op_table& table = c.op.table();
  if (table.index >= default_registry::size || c.in.size() > 3) return nullptr;
  const bool conditions = c.compute == dtype::boolean && table.types.mask == dtypes::boolean.mask;
  return c.compute == dtype::f32 || conditions ? isa_.block_steps(table.index) : nullptr;
}

// Values are floats in registers, so that to convert one is to round it to what the other dtype holds.
bool block_compiler::rounds(const call& c) const {
  if (!c.op.get_if<op::convert>()) return false;
  const dtype in = from_.values_[c.in[0]].type, out = from_.values_[c.out].type;
  if (in == dtype::i32) return out == dtype::f32;
  return (is_real(in) || is_byte(in)) && (is_real(out) || (is_byte(out) && (is_real(in) || in == out)));
}

bool block_compiler::served() const {
  for (const auto& v : from_.values_)
    if (!form_of(v.type) || (v.type == dtype::i32 && v.from != source::parameter)) return false;
  for (const call& c : from_.calls_) {
    const dtype out = from_.values_[c.out].type;
    if (c.kind == what::repeat) continue;
    if (c.kind == what::fold) {
      const std::uint32_t index = c.op.table().index;
      if (c.compute != dtype::f32 || out == dtype::boolean || index >= default_registry::size ||
          !isa_.block_folds(index))
        return false;
      continue;
    }
    if (rounds(c)) continue;
    for (std::uint32_t in : c.in)
      if (from_.values_[in].type == dtype::i32) return false;
    if (!steps_of(c) || (c.natural == dtype::boolean) != (out == dtype::boolean)) return false;
    if (c.compute == dtype::boolean && c.natural != dtype::boolean) return false;
  }
  for (std::uint32_t v : from_.results_)
    if (from_.values_[v].type == dtype::i32 || (!from_.values_[v].full && !is_real(from_.values_[v].type)))
      return false;
  return from_.values_.size() < 4096;
}

void block_compiler::give_places() {
  const std::size_t values = from_.values_.size();
  alias_.resize(values);
  for (std::uint32_t v = 0; v < values; ++v) alias_[v] = v;
  for (const call& c : from_.calls_)
    if (c.kind == what::repeat) alias_[c.out] = alias_[c.in[0]];
  place_.assign(values, 0);
  stream_.assign(values, 0);
  for (std::uint32_t v = 0; v < values; ++v) {
    const auto& value = from_.values_[v];
    if (alias_[v] != v) continue;
    place_[v] = new_place();
    if (value.from == source::constant) {
      out_->constant_places_.emplace_back(place_[v], v);
    } else if (!value.full) {
      out_->per_row_places_.push_back(place_[v]);
      if (value.from == source::parameter) out_->per_row_parameters_.push_back({value.index, place_[v], value.type});
    } else if (value.from == source::parameter) {
      stream_[v] = place_[v];
      out_->full_parameters_.push_back({value.index, place_[v], value.type});
      if (value.type != dtype::f32) place_[v] = new_slot();
    } else if (value.kept) {
      out_->row_buffers_.push_back(place_[v]);
    }
  }
  for (std::uint32_t k = 0; k < from_.results_.size(); ++k) {
    const std::uint32_t v = resolved(from_.results_[k]);
    result_.push_back(new_place());
    if (!from_.values_[from_.results_[k]].full) out_->per_row_results_.push_back({k, place_[v], from_.values_[v].type});
  }
}

// Which values a reader at their own level can't take from the accumulator.
void block_compiler::find_memory_uses() {
  memory_.assign(from_.values_.size(), false);
  last_.assign(from_.values_.size(), 0);
  for (std::size_t k = 0; k < from_.calls_.size(); ++k)
    for (std::uint32_t in : from_.calls_[k].in) last_[resolved(in)] = k;
  for (const bool per_row : {true, false})
    for (int level = 0; level <= from_.levels_; ++level) {
      std::uint32_t accumulator = nothing;
      for (const call& c : from_.calls_) {
        if (c.kind == what::repeat || c.level != level || c.per_row != per_row) continue;
        bool taken = false;
        for (std::uint32_t in : c.in) {
          const std::uint32_t v = resolved(in);
          if (v == accumulator && !taken)
            taken = true;
          else
            memory_[v] = true;
        }
        accumulator = c.kind == what::fold ? resolved(c.in[0]) : c.out;
      }
    }
}

// Each level prefetches as large a share of the next rows as it has of the work, so that memory is never idle. Results
// are prefetched before the last level, which writes them.
void block_compiler::share_fetches() {
  const auto count = static_cast<std::size_t>(from_.levels_);
  const auto share = [&](block_program::level::share block_program::level::*of, std::size_t sharing) {
    int all = 0, before = 0;
    for (std::size_t k = 0; k < sharing; ++k) all += out_->levels_[k].weight;
    for (std::size_t k = 0; k < sharing; ++k) {
      const int first = before;
      before += out_->levels_[k].weight;
      out_->levels_[k].*of = {(8 * first + all / 2) / all, (8 * before + all / 2) / all};
    }
  };
  share(&block_program::level::of_parameters, count);
  share(&block_program::level::of_results, std::max<std::size_t>(2, count) - 1);
}

std::unique_ptr<block_program> block_compiler::compile() {
  if (!served()) return nullptr;
  out_ = std::make_unique<block_program>();
  out_->parameters_ = from_.parameters_.size();
  out_->results_ = from_.results_.size();
  give_places();
  find_memory_uses();
  out_->levels_.resize(static_cast<std::size_t>(from_.levels_) + 1);  // the last one has only what runs once per row
  for (int level = 0; level <= from_.levels_; ++level) compile_level(level);
  share_fetches();
  const auto block = static_cast<std::size_t>(machine_.lanes[1]);
  out_->constants_ = buffer::allocate(std::max<std::size_t>(1, out_->constant_places_.size()) * block * sizeof(float));
  std::size_t at = 0;
  for (auto& [place, where] : out_->constant_places_) {
    const literal& l = from_.values_[where].constant;
    const float value = l.get_shape().type == dtype::boolean
                            ? from_bits<float>(*reinterpret_cast<const bool*>(l.bytes()) ? 0xffff'ffffU : 0U)
                            : visit_storage(l.get_shape().type, [&]<class S>(type_tag<S>) {
                                return convert_value<float>(*reinterpret_cast<const S*>(l.bytes()));
                              });
    where = at;
    machine_.fill(reinterpret_cast<float*>(out_->constants_.data()) + at, value);
    at += block;
  }
  return std::move(out_);
}

std::unique_ptr<block_program> block_program::make(const tile_program& p) { return block_compiler(p).compile(); }

}  // namespace kiln::eigen
