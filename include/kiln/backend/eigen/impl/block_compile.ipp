#include <algorithm>

#include "kiln/backend/eigen/block_program.hpp"

namespace kiln::eigen {

using kernels::block_form;
using kernels::block_step;

namespace {

std::optional<block_form> form_of(dtype t) {
  switch (t) {
    case dtype::f32:
      return block_form::f32;
    case dtype::f16:
      return block_form::f16;
    case dtype::bf16:
      return block_form::bf16;
    case dtype::boolean:
      return block_form::boolean;
    case dtype::u8:
      return block_form::u8;
    case dtype::i8:
      return block_form::i8;
    case dtype::i32:
      return block_form::i32;
    default:
      return std::nullopt;
  }
}
bool narrow_floats(dtype t) { return t == dtype::f16 || t == dtype::bf16; }
bool is_byte(dtype t) { return t == dtype::u8 || t == dtype::i8; }
bool is_real(dtype t) { return t == dtype::f32 || narrow_floats(t); }

constexpr std::uint32_t nothing = 0xffff'ffff;

}  // namespace

/// Turns the calls of a tile program into steps.
class block_compiler {
 public:
  explicit block_compiler(const tile_program& from) : from_(from), isa_(*kiln_eigen_isa()), machine_(*isa_.blocks()) {}
  std::unique_ptr<block_program> compile();

 private:
  using what = tile_program::call::what;
  using source = tile_program::source;
  using call = tile_program::call;
  using width = block_program::width;

  const kernels::pointwise_steps* steps_of(const call& c) const;
  bool rounds(const call& c) const;
  bool served() const;
  void give_places();
  void find_memory_uses();
  void compile_level(int level);
  void share_fetches();
  void emit_call(const call& c, std::vector<block_step> (&code)[2], bool scalar);
  void release_slots(const call& c);
  void emit(std::vector<block_step> (&code)[2], void (*const (&step)[kernels::block_widths])(), block_step rest) {
    for (std::size_t w = 0; w < kernels::block_widths; ++w) {
      rest.call = step[w];
      code[w].push_back(rest);
    }
  }
  void emit_load(std::vector<block_step> (&code)[2], dtype t, std::uint16_t place) {
    emit(code, machine_.move.load[static_cast<std::size_t>(*form_of(t))], {.in = {place}});
  }
  void emit_store(std::vector<block_step> (&code)[2], dtype t, std::uint16_t place) {
    emit(code, machine_.move.store[static_cast<std::size_t>(*form_of(t))], {.out = place});
  }
  std::uint16_t new_place() { return out_->places_++; }
  std::uint16_t new_slot() {
    const std::uint16_t place = new_place();
    out_->slot_places_.resize(out_->places_, 0);
    out_->slot_places_[place] = ++out_->slots_;
    return place;
  }
  // A repeat is the block of the scalar it repeats.
  std::uint32_t resolved(std::uint32_t v) const { return alias_[v]; }
  bool is_full(std::uint32_t v) const { return !from_.values_[v].scalar && from_.values_[v].from != source::constant; }

  const tile_program& from_;
  const isa_table& isa_;
  const kernels::block_machine& machine_;
  std::unique_ptr<block_program> out_;
  std::vector<std::uint32_t> alias_;
  std::vector<std::uint16_t> place_;   // by value: where its block is read
  std::vector<std::uint16_t> stream_;  // by value: a converted parameter's stream
  std::vector<bool> memory_;           // by value: read from memory at its own level
  std::vector<std::size_t> last_;      // by value: the call that reads it last
  std::vector<std::uint16_t> free_;    // slots whose values nobody reads any more
  std::vector<std::uint16_t> result_;  // by result
  std::uint32_t accumulator_ = nothing;
};

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
    if (from_.values_[v].type == dtype::i32 || (from_.values_[v].scalar && !is_real(from_.values_[v].type)))
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
    } else if (value.scalar) {
      out_->scalar_places_.push_back(place_[v]);
      if (value.from == source::parameter) out_->scalar_parameters_.push_back({value.index, place_[v], value.type});
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
    if (from_.values_[from_.results_[k]].scalar) out_->scalar_results_.push_back({k, place_[v], from_.values_[v].type});
  }
}

// Which values a reader at their own level can't take from the accumulator.
void block_compiler::find_memory_uses() {
  memory_.assign(from_.values_.size(), false);
  last_.assign(from_.values_.size(), 0);
  for (std::size_t k = 0; k < from_.calls_.size(); ++k)
    for (std::uint32_t in : from_.calls_[k].in) last_[resolved(in)] = k;
  for (const bool scalars : {true, false})
    for (int level = 0; level <= from_.levels_; ++level) {
      std::uint32_t accumulator = nothing;
      for (const call& c : from_.calls_) {
        if (c.kind == what::repeat || c.level != level || c.scalar != scalars) continue;
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

void block_compiler::emit_call(const call& c, std::vector<block_step> (&code)[2], bool scalar) {
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
  if (narrow_floats(out.type) || (is_byte(out.type) && (read || scalar)))
    emit(code, machine_.move.round[static_cast<std::size_t>(*form_of(out.type))], {});
  if (!scalar) release_slots(c);
  if (scalar || out.kept || memory_[c.out]) {
    if (!scalar && !out.kept) {
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
    if (again || value.scalar || value.kept || value.from != source::computed || !memory_[v]) continue;
    free_.push_back(out_->slot_places_[place_[v]]);
  }
}

void block_compiler::compile_level(int level) {
  block_program::level& to = out_->levels_[static_cast<std::size_t>(level)];
  out_->slot_places_.resize(out_->places_, 0);
  std::vector<block_step> scalars[2];
  // what a fold of a narrow float gives is rounded before anything reads it
  for (const call& c : from_.calls_)
    if (c.kind == what::fold && c.level + 1 == level && narrow_floats(from_.values_[c.out].type)) {
      emit_load(scalars, dtype::f32, place_[c.out]);
      emit(scalars, machine_.move.round[static_cast<std::size_t>(*form_of(from_.values_[c.out].type))], {});
      emit_store(scalars, dtype::f32, place_[c.out]);
    }
  accumulator_ = nothing;
  for (const call& c : from_.calls_)
    if (c.scalar && c.level == level) emit_call(c, scalars, true);
  if (!scalars[1].empty()) {
    emit(scalars, machine_.move.end, {});
    for (block_step& s : scalars[0])  // one row's values are repeated where wide blocks read them
      if (s.call == machine_.move.store[static_cast<std::size_t>(block_form::f32)][0]) s.call = machine_.move.repeat;
    to.scalars = {std::move(scalars[0]), std::move(scalars[1])};
  }
  if (level == from_.levels_) return;

  const bool last = level + 1 == from_.levels_;
  std::vector<block_step> code[2], streaming;
  std::vector<bool> read(from_.values_.size(), false);
  const auto reads = [&](std::uint32_t v) {
    v = resolved(v);
    const auto& value = from_.values_[v];
    if (read[v]) return;
    read[v] = true;
    if (value.from == source::computed && value.kept) to.kept.push_back(place_[v]);
    if (value.from != source::parameter || value.scalar) return;
    to.loads.push_back({value.index, stream_[v], value.type});
    if (stream_[v] == place_[v]) return;
    emit_load(code, value.type, stream_[v]);
    emit_store(code, dtype::f32, place_[v]);
  };
  for (const call& c : from_.calls_) {
    if (c.scalar || c.kind == what::repeat || c.level != level) continue;
    for (std::uint32_t in : c.in) reads(in);
    if (c.kind == what::fold)
      to.folds.push_back({c.op, isa_.block_folds(c.op.table().index), place_[c.out], from_.values_[c.out].type});
    else if (from_.values_[c.out].kept)
      reads(c.out);
  }
  if (last)
    for (std::uint32_t v : from_.results_)
      if (!from_.values_[v].scalar) reads(v);

  const auto store_results = [&](std::uint32_t v) {
    for (std::uint32_t k = 0; last && k < result_.size(); ++k) {
      if (resolved(from_.results_[k]) != v || from_.values_[from_.results_[k]].scalar) continue;
      const dtype type = from_.values_[v].type;
      to.stores.push_back({k, result_[k], type});
      emit_store(code, type, result_[k]);
    }
  };
  accumulator_ = nothing;
  for (const call& c : from_.calls_) {
    if (c.scalar || c.kind == what::repeat || c.level != level) continue;
    emit_call(c, code, false);
    if (c.kind != what::fold) store_results(c.out);
  }
  // results that were there before this level
  for (std::uint32_t k = 0; last && k < result_.size(); ++k) {
    const std::uint32_t v = resolved(from_.results_[k]);
    bool stored = from_.values_[from_.results_[k]].scalar;
    for (const block_program::port& p : to.stores) stored = stored || p.index == k;
    if (stored) continue;
    emit_load(code, dtype::f32, place_[v]);
    store_results(v);
  }
  emit(code, machine_.move.end, {});
  for (const call& c : from_.calls_)
    if (!c.scalar && c.level == level) to.weight += c.kind == what::tile && !rounds(c) ? steps_of(c)->weight : 1;
  streaming = code[1];
  for (block_step& s : streaming) {
    const bool result =
        std::any_of(to.stores.begin(), to.stores.end(), [&](const block_program::port& p) { return p.place == s.out; });
    if (result && s.call == machine_.move.store[static_cast<std::size_t>(block_form::f32)][1])
      s.call = machine_.move.stream[1];
  }
  to.code = {std::move(code[0]), std::move(code[1]), std::move(streaming)};
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

// Each level asks for as much of the rows that come next as it has of the work, so that memory works all the time.
// Results are asked for before the last level, which writes them.
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
  out_->levels_.resize(static_cast<std::size_t>(from_.levels_) + 1);  // the last one has scalars only
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
