#include <algorithm>

#include "kiln/backend/eigen/impl/pointwise/block_compiler.hpp"

namespace kiln::eigen {

void block_compiler::emit_call(const call& c, code_by_width& code) {
  std::size_t at = 0;
  while (at < c.in.size() && resolved(c.in[at]) != accumulator_) ++at;
  if (at == c.in.size()) {
    at = 0;
    emit_load(code, dtype::f32, place_[resolved(c.in[0])]);
    accumulator_ = resolved(c.in[0]);
  }
  if (c.kind == what::fold) {
    emit(code, isa_.block_folds(c.op.table().index)->of, {.op = c.op.data(), .out = place_[c.out]});
    return;
  }
  block_step step{.op = c.op.data()};
  std::size_t other = 0;
  for (std::size_t i = 0; i < c.in.size(); ++i)
    if (i != at) step.in[other++] = place_[resolved(c.in[i])];
  const auto& out = from_.values_[c.out];
  const bool repeated = c.in.size() == 2 && !is_full(resolved(c.in[1]));
  if (c.op.get_if<op::div>() && at == 0 && repeated)
    emit(code, machine_.move.divide, step);
  else if (!rounds(c))
    for (std::size_t w = 0; w < kernels::block_widths; ++w) {
      step.call = steps_of(c)->of[w][c.op.info().commutative && c.in.size() == 2 ? 0 : at];
      code[w].push_back(step);
    }
  const bool read = last_[c.out] != 0;  // a store rounds as well
  if (narrow_floats(out.type) || (is_byte(out.type) && (read || c.per_row)))
    emit(code, machine_.move.round[static_cast<std::size_t>(*form_of(out.type))], {});
  if (!c.per_row) release_slots(c);
  if (c.per_row || out.kept || memory_[c.out]) {
    if (!c.per_row && !out.kept) {
      if (free_.empty()) free_.push_back(++out_->slots_);
      out_->slot_places_[place_[c.out]] = free_.back();
      free_.pop_back();
    }
    emit_store(code, dtype::f32, place_[c.out]);
  }
  accumulator_ = c.out;
}

// Slots whose last reader is this call.
void block_compiler::release_slots(const call& c) {
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    const std::uint32_t v = resolved(c.in[i]);
    bool again = last_[v] != static_cast<std::size_t>(&c - from_.calls_.data());
    for (std::size_t k = 0; k < i; ++k) again = again || resolved(c.in[k]) == v;
    const auto& value = from_.values_[v];
    if (again || !value.full || value.kept || value.from != source::computed || !memory_[v]) continue;
    free_.push_back(out_->slot_places_[place_[v]]);
  }
}

// The code that runs once per row, before the level.
void block_compiler::emit_per_row(int level) {
  code_by_width code;
  // what a fold of a narrow float gives is rounded before anything reads it
  for (const call& c : from_.calls_)
    if (c.kind == what::fold && c.level + 1 == level && narrow_floats(from_.values_[c.out].type)) {
      emit_load(code, dtype::f32, place_[c.out]);
      emit(code, machine_.move.round[static_cast<std::size_t>(*form_of(from_.values_[c.out].type))], {});
      emit_store(code, dtype::f32, place_[c.out]);
    }
  accumulator_ = nothing;
  for (const call& c : from_.calls_)
    if (c.per_row && c.level == level) emit_call(c, code);
  if (code[1].empty()) return;
  emit(code, machine_.move.end, {});
  for (block_step& s : code[0])  // one row's values are repeated where wide blocks read them
    if (s.call == machine_.move.store[static_cast<std::size_t>(block_form::f32)][0]) s.call = machine_.move.repeat;
  level_at(level).per_row = {std::move(code[0]), std::move(code[1])};
}

// What a level reads, in the order of its calls: its streams and row buffers; code that converts parameters.
void block_compiler::find_reads(int level, code_by_width& code) {
  block_program::level& to = level_at(level);
  std::vector<bool> read(from_.values_.size(), false);
  const auto reads = [&](std::uint32_t v) {
    v = resolved(v);
    const auto& value = from_.values_[v];
    if (read[v]) return;
    read[v] = true;
    if (value.from == source::computed && value.kept) to.kept.push_back(place_[v]);
    if (value.from != source::parameter || !value.full) return;
    to.loads.push_back({value.index, stream_[v], value.type});
    if (stream_[v] == place_[v]) return;
    emit_load(code, value.type, stream_[v]);
    emit_store(code, dtype::f32, place_[v]);
  };
  for (const call& c : from_.calls_) {
    if (!is_full_call(c, level)) continue;
    for (std::uint32_t in : c.in) reads(in);
    if (c.kind == what::fold)
      to.folds.push_back({c.op, isa_.block_folds(c.op.table().index), place_[c.out], from_.values_[c.out].type});
    else if (from_.values_[c.out].kept)
      reads(c.out);
  }
  if (level + 1 != from_.levels_) return;
  for (std::uint32_t v : from_.results_)
    if (from_.values_[v].full) reads(v);
}

// Stores the full results that a value is.
void block_compiler::emit_results(std::uint32_t v, block_program::level& to, code_by_width& code) {
  for (std::uint32_t k = 0; k < result_.size(); ++k) {
    if (resolved(from_.results_[k]) != v || !from_.values_[from_.results_[k]].full) continue;
    const dtype type = from_.values_[v].type;
    to.stores.push_back({k, result_[k], type});
    emit_store(code, type, result_[k]);
  }
}

// The code over a row's elements.
void block_compiler::emit_full(int level, code_by_width& code) {
  block_program::level& to = level_at(level);
  const bool last = level + 1 == from_.levels_;
  accumulator_ = nothing;
  for (const call& c : from_.calls_) {
    if (!is_full_call(c, level)) continue;
    emit_call(c, code);
    if (last && c.kind != what::fold) emit_results(c.out, to, code);
  }
  // results that were there before this level
  for (std::uint32_t k = 0; last && k < result_.size(); ++k) {
    const std::uint32_t v = resolved(from_.results_[k]);
    bool stored = !from_.values_[from_.results_[k]].full;
    for (const block_program::port& p : to.stores) stored = stored || p.index == k;
    if (stored) continue;
    emit_load(code, dtype::f32, place_[v]);
    emit_results(v, to, code);
  }
  emit(code, machine_.move.end, {});
}

// The streams and row buffers that go on by a block, and the compiled loops for that.
void block_compiler::find_moves(block_program::level& to) {
  for (std::size_t w = 0; w < 2; ++w) {
    const auto add = [&](std::uint16_t place, dtype t) {
      to.moves[w].push_back({place, machine_.lanes[w] * static_cast<std::int64_t>(size_of(t))});
    };
    for (std::uint16_t place : to.kept) add(place, dtype::f32);
    for (const block_program::port& p : to.loads) add(p.place, p.type);
    for (const block_program::port& p : to.stores) add(p.place, p.type);
  }
  const auto find_loop = [&](std::size_t variant) {
    return machine_.find_loop(to.code[variant].data(), to.moves[1].data(), to.moves[1].size());
  };
  to.loop = {find_loop(1), find_loop(2)};
  out_->compiled_ = out_->compiled_ && to.loop[0] && to.loop[1];
}

void block_compiler::compile_level(int level) {
  block_program::level& to = level_at(level);
  out_->slot_places_.resize(out_->places_, 0);
  emit_per_row(level);
  if (level == from_.levels_) return;
  code_by_width code;
  find_reads(level, code);
  emit_full(level, code);
  for (const call& c : from_.calls_)
    if (!c.per_row && c.level == level) to.weight += c.kind == what::tile && !rounds(c) ? steps_of(c)->weight : 1;
  std::vector<block_step> streaming = code[1];
  for (block_step& s : streaming) {
    const bool result =
        std::any_of(to.stores.begin(), to.stores.end(), [&](const block_program::port& p) { return p.place == s.out; });
    if (result && s.call == machine_.move.store[static_cast<std::size_t>(block_form::f32)][1])
      s.call = machine_.move.stream[1];
  }
  to.code = {std::move(code[0]), std::move(code[1]), std::move(streaming)};
  find_moves(to);
}

}  // namespace kiln::eigen
