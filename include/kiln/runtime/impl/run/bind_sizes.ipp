#include <algorithm>
#include <atomic>

#include "kiln/core/huge_page.hpp"
#include "kiln/graph/symbols.hpp"
#include "kiln/runtime/impl/plan/branches.hpp"
#include "kiln/runtime/impl/run/planned_program.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln::detail {
namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> made{0};
  return ++made;
}

// What the shape rules of ops could not decide while extents were names, they decide now.
void check_rules(const plan& p, const run_memory& w) {
  for (const open_rule& r : p.rules) {
    small_vector<shape> in;
    bool sized = true;
    for (const open_rule::operand& o : r.operands) {
      in.push_back(shape{o.type, {}});
      for (const std::uint32_t slot : o.lens) {
        sized = sized && w.sizes[slot] >= 0;
        in.back().lens.push_back(w.sizes[slot]);
      }
    }
    if (!sized) continue;  // who makes an extent below 0 is told instead
    operation op = r.op;
    op.substitute(w.values);
    const auto made = op.shape_rule({in.data(), in.size()});
    if (!made) throw error(made.why()).at_op(op.name()).at_instruction(r.instruction);
  }
}

// A slice or a window that takes more than there is shows only now.
void check_extents(const plan& p, std::span<const step_info> infos, const run_memory& w) {
  if (std::none_of(w.sizes.begin(), w.sizes.end(), [](std::int64_t n) { return n < 0; })) return;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const step& st = p.steps[i];
    for (std::uint32_t k = 0; k < st.inputs + st.outputs; ++k) {
      const operand& o = p.operands[st.first_operand + k];
      for (std::size_t d = 0; d < o.lens.size(); ++d) {
        if (w.sizes[o.lens[d]] >= 0) continue;
        const step_info& info = infos[i];
        const shape& type = k < st.inputs ? info.inputs[k] : info.outputs[k - st.inputs];
        error e(errc::shape_mismatch, "dimension '" + to_string(type.lens[d]) + "' is not negative: found " +
                                          std::to_string(w.sizes[o.lens[d]]));
        throw e.at_instruction(info.instruction);
      }
    }
  }
}

bool has_changed(const operand& o, const run_memory& w) {
  const auto differs = [&](std::uint32_t slot) { return w.before[slot] != w.sizes[slot]; };
  bool any = differs(o.offset);
  for (std::size_t d = 0; d < o.lens.size(); ++d) any = any || differs(o.lens[d]) || differs(o.strides[d]);
  return any;
}

// Without their memory: addresses count from the bases. Where the tensors of other sizes are there, only those are
// made that differ.
void make_tensors(const plan& p, run_memory& w) {
  w.tensors.resize(p.operands.size());
  w.changed.resize(p.operands.size());
  for (std::size_t k = 0; k < p.operands.size(); ++k) {
    const operand& o = p.operands[k];
    w.changed[k] = w.before.empty() || has_changed(o, w);
    if (!w.changed[k]) continue;
    tensor& t = w.tensors[k];
    t.type = o.type;
    t.lens.clear();
    t.strides.clear();
    for (std::size_t d = 0; d < o.lens.size(); ++d) {
      t.lens.push_back(w.sizes[o.lens[d]]);
      t.strides.push_back(w.sizes[o.strides[d]]);
    }
    t.data = reinterpret_cast<std::byte*>(w.sizes[o.offset] * static_cast<std::int64_t>(size_of(o.type)));
  }
}

}  // namespace

planned_program::planned_program(plan p, const compiled_program& of, std::shared_ptr<const device> where)
    : plan_(std::move(p)),
      ports_(of.ports),
      infos_(of.report.steps),
      pool_(*of.pool),
      where_(std::move(where)),
      id_(next_id()) {}

// Everything that depends on sizes only, memory aside.
template <class ShapeAt> void planned_program::evaluate_sizes(run_memory& w, ShapeAt given) const {
  w.values.clear();
  for (const auto& [symbol, value] : w.outer) w.values.bind(symbol, value);
  for (const signature::symbol_source& s : ports_.symbols) w.values.bind(s.symbol, given(s.input).lens[s.dim].raw());
  for (const growing_output& g : plan_.growing) w.values.bind(g.capacity, capacity(g, given(g.input)));
  w.sizes.resize(plan_.sizes.size());
  plan_.sizes.evaluate(w.values, w.sizes.data());
  for (std::size_t i = 0; i < ports_.inputs.size(); ++i)
    for (std::size_t d = 0; d < given(i).rank(); ++d)
      if (const std::int64_t expected = w.sizes[plan_.inputs[i].lens[d]]; expected != given(i).lens[d].raw())
        raise(errc::shape_mismatch, "input '" + ports_.inputs[i].name + "' dimension " + std::to_string(d) + " (" +
                                        to_string(ports_.inputs[i].type.lens[d]) + "): expected " +
                                        std::to_string(expected) + ", found " + std::to_string(given(i).lens[d].raw()));
  for (const obligation& o : plan_.obligations)
    if (w.sizes[o.left] != w.sizes[o.right])
      raise(errc::shape_mismatch,
            o.rule + ": expected " + std::to_string(w.sizes[o.right]) + ", found " + std::to_string(w.sizes[o.left]));
  check_rules(plan_, w);
  check_extents(plan_, infos_, w);
}

void planned_program::take_sizes(run_memory& w) const {
  make_tensors(plan_, w);
  choose_alone(plan_, w.tensors, w.changed, w.sizes, where_ ? 1 : pool_.size(), w.alone);
}

template <class ShapeAt> void planned_program::bind_sizes(run_memory& w, std::size_t count, ShapeAt given) const {
  ports_.check_count(count);
  bool same = w.owner == id_ && !w.outer_changed;
  std::size_t at = 0;
  const auto compare = [&](std::int64_t extent) {
    same = same && at < w.bound.size() && w.bound[at] == extent;
    ++at;
  };
  for (std::size_t i = 0; i < count; ++i) {
    ports_.check_type(i, given(i));
    for (const dimension d : given(i).lens) compare(d.raw());
  }
  for (const growing_output& g : plan_.growing) compare(capacity(g, given(g.input)));
  if (same) return;
  const bool again = w.owner == id_;
  w.owner = 0;  // until everything below has succeeded
  w.before.reserve(plan_.sizes.size());
  w.before.clear();
  if (again) w.before = w.sizes;
  w.bound.clear();
  for (std::size_t i = 0; i < count; ++i)
    for (const dimension d : given(i).lens) w.bound.push_back(d.raw());
  for (const growing_output& g : plan_.growing) w.bound.push_back(capacity(g, given(g.input)));
  evaluate_sizes(w, given);
  take_sizes(w);
  prepare_kernels(w);
  if (!again || !fits_placement(plan_, w) || !fits_scratch(w)) {
    place(w, again);
    bind_arena(w);
  } else {
    w.on_device.forget_runs();
  }
  bind_constants(w);
  w.outer_changed = false;
  w.owner = id_;
}

void planned_program::bind(run_memory& w, std::span<const shape> inputs) const {
  bind_sizes(w, inputs.size(), [&](std::size_t i) -> const shape& { return inputs[i]; });
}

void planned_program::begin_run(run_memory& w, std::span<const argument> inputs, std::span<argument> outputs) const {
  bind_sizes(w, inputs.size(), [&](std::size_t i) -> const shape& { return inputs[i].get_shape(); });
  ports_.check_data(inputs);
  if (outputs.size() == ports_.outputs.size())
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (is_unset(outputs[k])) outputs[k] = make_output(w, k, inputs);
  check_outputs(w, inputs, outputs);
}

bool planned_program::bind_known_sizes(run_memory& w, const program& optimized) const {
  small_vector<dimension> mentioned;
  for (std::uint32_t i = 0; i < optimized.main().size(); ++i) collect_symbols(optimized.main(), i, mentioned);
  if (!mentioned.empty() || !plan_.growing.empty()) return false;
  evaluate_sizes(w, [&](std::size_t i) -> const shape& { return ports_.inputs[i].type; });
  take_sizes(w);
  return true;
}

void planned_program::bind_arena(run_memory& w) const {
  w.serve(where_);
  w.on_device.forget_runs();
  // Whole 2 MiB pages: what is left after the last whole one would be in pages of 4 KiB.
  w.grow(w.arena, where_ || w.needed < huge_page / 2 ? w.needed : whole_huge_pages(w.needed));
  w.bases.assign(plan_.buffers.size(), nullptr);
  for (std::size_t s = 0; s < plan_.buffers.size(); ++s)
    if (plan_.buffers[s].kind == lower::memory::arena || plan_.buffers[s].kind == lower::memory::symbolic)
      w.bases[s] = w.arena.data() + w.offsets[s];
}

// Room to grow, where the arena has it or must be enlarged anyway.
void planned_program::place(run_memory& w, bool again) const {
  const auto try_with = [&](bool spare) {
    choose_groups(w, spare);
    place_arena(plan_, w, pool_.size(), spare);
    return w.needed <= w.arena.size();
  };
  if (!try_with(again) && again && !try_with(false)) try_with(true);
}
std::size_t planned_program::scratch_of(const run_memory& w, const step& s) const {
  const bool alone = w.alone[static_cast<std::size_t>(&s - plan_.steps.data())] != 0;
  return aligned(s.run->scratch_bytes(inputs_of(w, s), outputs_of(w, s), alone ? 1 : pool_.size()));
}
bool planned_program::has_changed(const run_memory& w, const step& s) const {
  const auto first = w.changed.begin() + s.first_operand;
  return std::find(first, first + s.inputs + s.outputs, 1) != first + s.inputs + s.outputs;
}
bool planned_program::fits_scratch(const run_memory& w) const {
  for (std::size_t i = 0; i < plan_.steps.size(); ++i)
    if (has_changed(w, plan_.steps[i]) && scratch_of(w, plan_.steps[i]) > w.scratch[i]) return false;
  return true;
}

void planned_program::choose_groups(run_memory& w, bool spare) const {
  w.scratch.clear();
  for (const step& s : plan_.steps) {
    const std::size_t n = scratch_of(w, s);
    w.scratch.push_back(spare && has_changed(w, s) ? aligned(n + n / 8) : n);
  }
  detail::choose_groups(plan_, w.tensors, w.sizes, w.scratch, pool_.size(), w.beside);
}

shape planned_program::output_shape(const run_memory& w, std::size_t k) const {
  shape out{plan_.outputs[k].type, {}};
  for (const std::uint32_t slot : plan_.outputs[k].lens) out.lens.push_back(w.sizes[slot]);
  return out;
}

std::vector<shape> planned_program::output_shapes(std::span<const shape> inputs) const {
  run_memory w;
  evaluate_sizes(w, [&](std::size_t i) -> const shape& { return inputs[i]; });
  std::vector<shape> out;
  for (std::size_t k = 0; k < ports_.outputs.size(); ++k) out.push_back(output_shape(w, k));
  return out;
}

}  // namespace kiln::detail
