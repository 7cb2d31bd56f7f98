#include "kiln/runtime/executable.hpp"

#include <algorithm>

#include "kiln/graph/symbols.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/impl/branches.hpp"
#include "kiln/runtime/impl/executable_state.hpp"
#include "kiln/runtime/processor.hpp"
#include "kiln/runtime/run_options.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln {

namespace {
using detail::alignment;
}  // namespace

workspace::workspace() : state_(std::make_unique<state>()) {}
workspace::workspace(workspace&&) noexcept = default;
workspace& workspace::operator=(workspace&&) noexcept = default;
workspace::~workspace() = default;
std::size_t workspace::bytes() const { return state_->arena.size() + state_->staging.size() + state_->edges.size(); }
std::size_t workspace::growths() const { return state_->growths; }

executable::executable(std::unique_ptr<state> s) : state_(std::move(s)) {}
executable::executable(executable&&) noexcept = default;
executable& executable::operator=(executable&&) noexcept = default;
executable::~executable() = default;
std::span<const port> executable::inputs() const { return state_->inputs; }
std::span<const port> executable::outputs() const { return state_->outputs; }
const compile_report& executable::report() const { return state_->report; }
const program& executable::optimised() const { return state_->optimised; }
thread_pool& executable::pool() const { return *state_->pool; }

std::size_t executable::input_index(std::string_view name) const {
  for (std::size_t i = 0; i < state_->inputs.size(); ++i)
    if (state_->inputs[i].name == name) return i;
  std::string known;
  for (const port& p : state_->inputs) known += (known.empty() ? "'" : ", '") + p.name + "'";
  raise(errc::not_found,
        "an input is named as in the program: expected one of " + known + ", found '" + std::string(name) + "'");
}

void executable::state::check_type(const port& p, const shape& given, const char* what) const {
  bool fits = given.type == p.type.type && given.rank() == p.type.rank() && given.is_constant();
  for (std::size_t d = 0; fits && d < given.rank(); ++d)
    fits = !p.type.lens[d].is_constant() || p.type.lens[d] == given.lens[d];
  if (fits) return;
  raise(errc::shape_mismatch,
        std::string(what) + " '" + p.name + "': expected " + to_string(p.type) + ", found " + to_string(given));
}

// Everything that depends on sizes only, memory aside.
template <class ShapeAt>
void executable::state::evaluate_sizes(workspace::state& w, std::size_t count, ShapeAt given) const {
  w.values.clear();
  for (const auto& [symbol, value] : w.outer) w.values.bind(symbol, value);
  for (const symbol_source& s : symbols) w.values.bind(s.symbol, given(s.input).lens[s.dim].raw());
  for (const detail::growing_output& g : plan.growing) w.values.bind(g.capacity, capacity(g, given(g.input)));
  w.sizes.resize(plan.sizes.size());
  plan.sizes.evaluate(w.values, w.sizes.data());
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t d = 0; d < inputs[i].type.rank(); ++d)
      if (const std::int64_t expected = w.sizes[plan.inputs[i].lens[d]]; expected != given(i).lens[d].raw())
        raise(errc::shape_mismatch, "input '" + inputs[i].name + "' dimension " + std::to_string(d) + " (" +
                                        to_string(inputs[i].type.lens[d]) + "): expected " + std::to_string(expected) +
                                        ", found " + std::to_string(given(i).lens[d].raw()));
  for (const detail::obligation& o : plan.obligations)
    if (w.sizes[o.left] != w.sizes[o.right])
      raise(errc::shape_mismatch,
            o.rule + ": expected " + std::to_string(w.sizes[o.right]) + ", found " + std::to_string(w.sizes[o.left]));
  check_rules(w);
  check_extents(w);
}

// What the shape rules of ops could not decide while extents were names, they decide now.
void executable::state::check_rules(const workspace::state& w) const {
  for (const detail::open_rule& r : plan.rules) {
    small_vector<shape> in;
    bool sized = true;
    for (const detail::open_rule::operand& o : r.operands) {
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
void executable::state::check_extents(const workspace::state& w) const {
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const detail::step& st = plan.steps[i];
    for (std::uint32_t k = 0; k < st.inputs + st.outputs; ++k) {
      const detail::operand& o = plan.operands[st.first_operand + k];
      for (std::size_t d = 0; d < o.lens.size(); ++d) {
        if (w.sizes[o.lens[d]] >= 0) continue;
        const step_info& info = report.steps[i];
        const shape& type = k < st.inputs ? info.inputs[k] : info.outputs[k - st.inputs];
        error e(errc::shape_mismatch, "dimension '" + to_string(type.lens[d]) + "' is not negative: found " +
                                          std::to_string(w.sizes[o.lens[d]]));
        throw e.at_instruction(info.instruction);
      }
    }
  }
}

template <class ShapeAt>
void executable::state::bind_sizes(workspace::state& w, std::size_t count, ShapeAt given) const {
  if (count != inputs.size()) raise(fault::of(errc::invalid_argument, "number of inputs", inputs.size(), count));
  bool same = w.owner == id;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    check_type(inputs[i], given(i), "input");
    for (dimension d : given(i).lens) {
      same = same && at < w.bound.size() && w.bound[at] == d.raw();
      ++at;
    }
  }
  for (const detail::growing_output& g : plan.growing) {
    same = same && at < w.bound.size() && w.bound[at] == capacity(g, given(g.input));
    ++at;
  }
  if (same) return;
  w.owner = 0;  // until everything below has succeeded
  w.bound.clear();
  for (std::size_t i = 0; i < count; ++i)
    for (dimension d : given(i).lens) w.bound.push_back(d.raw());
  for (const detail::growing_output& g : plan.growing) w.bound.push_back(capacity(g, given(g.input)));
  evaluate_sizes(w, count, given);
  make_tensors(w);
  if (for_device) prepare_kernels(w);
  choose_groups(w);
  place_arena(w);
  w.owner = id;
}

// Without their memory: addresses count from the bases.
void executable::state::make_tensors(workspace::state& w) const {
  w.tensors.resize(plan.operands.size());
  for (std::size_t k = 0; k < plan.operands.size(); ++k) {
    const detail::operand& o = plan.operands[k];
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

void executable::state::prepare_kernels(const workspace::state& w) const {
  pool->parallel_for(static_cast<std::int64_t>(plan.steps.size()), [&](std::int64_t i, unsigned) {
    const detail::step& st = plan.steps[static_cast<std::size_t>(i)];
    const std::span<const tensor> all(w.tensors.data() + st.first_operand, st.inputs + st.outputs);
    try {
      st.run->prepare(all.first(st.inputs), all.subspan(st.inputs));
    } catch (error& e) {
      throw e.at_instruction(report.steps[static_cast<std::size_t>(i)].instruction);
    }
  });
}

// Which steps run side by side, and what scratch memory each step takes.
void executable::state::choose_groups(workspace::state& w) const {
  w.scratch.clear();
  for (const detail::step& st : plan.steps) {
    const std::span<const tensor> all(w.tensors.data() + st.first_operand, st.inputs + st.outputs);
    w.scratch.push_back(
        detail::aligned(st.run->scratch_bytes(all.first(st.inputs), all.subspan(st.inputs), pool->size())));
  }
  detail::choose_groups(plan, w.tensors, w.sizes, w.scratch, pool->size(), w.beside);
}

// Where no size depends on a symbol, kernels can be ready before any run, and which of them run side by side is known.
void executable::state::prepare_constant_sizes() {
  if (!for_device && plan.groups.empty()) return;
  small_vector<dimension> symbols_mentioned;
  for (std::uint32_t i = 0; i < optimised.main().size(); ++i) collect_symbols(optimised.main(), i, symbols_mentioned);
  if (!symbols_mentioned.empty() || !plan.growing.empty()) return;
  workspace::state w;
  evaluate_sizes(w, inputs.size(), [&](std::size_t i) -> const shape& { return inputs[i].type; });
  make_tensors(w);
  if (for_device) return prepare_kernels(w);
  choose_groups(w);
  for (const detail::branch_choice::group& g : w.beside.groups)
    for (std::size_t b = 0; b < g.of->branches.size(); ++b)
      for (const std::uint32_t i : g.of->branches[b]) {
        report.steps[i].group = g.of->first;
        report.steps[i].branch = static_cast<std::int64_t>(b);
      }
}

void executable::bind(workspace& w, std::span<const shape> inputs) const {
  if (state_->stages) return state_->check_inputs(inputs);
  state_->bind_sizes(*w.state_, inputs.size(), [&](std::size_t i) -> const shape& { return inputs[i]; });
}

shape executable::state::output_shape(const workspace::state& w, std::size_t k) const {
  shape out{plan.outputs[k].type, {}};
  for (std::uint32_t slot : plan.outputs[k].lens) out.lens.push_back(w.sizes[slot]);
  return out;
}

void executable::state::check_data(std::span<const argument> given) const {
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!given[i] && given[i].elements() != 0) raise(errc::invalid_argument, "input '" + inputs[i].name + "' has data");
}

void executable::state::check_inputs(std::span<const shape> given) const {
  if (given.size() != inputs.size())
    raise(fault::of(errc::invalid_argument, "number of inputs", inputs.size(), given.size()));
  for (std::size_t i = 0; i < given.size(); ++i) check_type(inputs[i], given[i], "input");
}

std::vector<shape> executable::output_shapes(std::span<const shape> inputs) const {
  state_->check_inputs(inputs);
  workspace::state w;
  if (state_->stages) {
    for (const auto& s : state_->symbols) w.values.bind(s.symbol, inputs[s.input].lens[s.dim].raw());
    std::vector<shape> open;
    for (const port& p : state_->outputs) {
      open.push_back({p.type.type, {}});
      for (const dimension d : p.type.lens) open.back().lens.push_back(w.values.substitute(d));
    }
    return open;
  }
  state_->evaluate_sizes(w, inputs.size(), [&](std::size_t i) -> const shape& { return inputs[i]; });
  std::vector<shape> out;
  for (std::size_t k = 0; k < state_->outputs.size(); ++k) out.push_back(state_->output_shape(w, k));
  return out;
}

std::vector<argument> executable::make_outputs(std::span<const shape> inputs) const {
  std::vector<argument> out;
  for (const shape& s : output_shapes(inputs))
    out.push_back(s.is_constant() && !is_object(s.type) ? state_->allocate_output(out.size(), s) : argument());
  return out;
}

namespace {

// Where an empty value without memory lies: to a kernel, null would mean no operand.
alignas(alignment) std::byte empty_tensor[alignment];

}  // namespace

std::byte* executable::state::stage(workspace::state& w, std::span<const argument> inputs) const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) bytes += staged_bytes(i, inputs[i]);
  const std::uint64_t owner = w.owner;
  w.grow(w.staging, bytes);
  w.owner = owner;
  return w.staging.data();
}

void executable::run(workspace& w, std::span<const argument> inputs, std::span<argument> outputs) const {
  run(w, inputs, outputs, run_options());
}

void executable::run(workspace& w, std::span<const argument> inputs, std::span<argument> outputs,
                     const run_options& options) const {
  detail::executable_access::run(*this, w, inputs, outputs, options, {});
}

void detail::executable_access::run(const executable& e, workspace& w, std::span<const argument> inputs,
                                    std::span<argument> outputs, const run_options& options,
                                    const std::vector<std::pair<dimension, std::int64_t>>& outer) {
  e.state_->run(w, inputs, outputs, options, outer);
}

void executable::state::run(workspace& w, std::span<const argument> given, std::span<argument> made,
                            const run_options& options,
                            const std::vector<std::pair<dimension, std::int64_t>>& outer) const {
  const flush_denormals flush(flushes_denormals);
  workspace::state& ws = *w.state_;
  if (for_device && !where)
    raise(errc::unsupported, "an executable runs where its device is: this was compiled for an absent one");
  if (ws.outer != outer) {
    ws.outer = outer;
    ws.owner = 0;
  }
  if (stages)
    run_stages(ws, given, made, options);
  else
    run_planned(ws, given, made, options);
}

void executable::state::run_planned(workspace::state& ws, std::span<const argument> given, std::span<argument> made,
                                    const run_options& options) const {
  bind_sizes(ws, given.size(), [&](std::size_t i) -> const shape& { return given[i].get_shape(); });
  check_data(given);
  if (made.size() == outputs.size())
    for (std::uint32_t k = 0; k < made.size(); ++k)
      if (detail::is_unset(made[k])) made[k] = make_output(ws, k, given);
  check_outputs(ws, given, made);
  if (for_device) return run_on_device(ws, given, made, options);

  const auto& storages = plan.storages;
  std::byte* staging = stage(ws, given);
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (storages[s].kind == detail::place_kind::input) {
      const argument& a = given[storages[s].index];
      auto* data = const_cast<std::byte*>(a.data());  // kernels only read their inputs
      ws.bases[s] = data;
      if (const std::size_t bytes = staged_bytes(storages[s].index, a)) {
        const ints lens = to_ints(a.get_shape().lens);
        const dtype type = a.get_shape().type;
        copy_tensor({data, type, lens, to_ints(a.get_shape().strides)}, {staging, type, lens, row_major(lens)},
                    pool.get());
        ws.bases[s] = staging;
        staging += bytes;
      }
    } else if (storages[s].kind == detail::place_kind::output) {
      ws.bases[s] = made[storages[s].index].data();
    }
  }
  for (std::size_t k = 0; k < ws.tensors.size(); ++k) {
    const detail::operand& o = plan.operands[k];
    std::byte* const base = ws.bases[o.storage];
    ws.tensors[k].data = base ? base + ws.sizes[o.offset] * static_cast<std::int64_t>(size_of(o.type)) : empty_tensor;
  }
  run_steps(ws, options);
}

std::vector<argument> executable::run(std::span<const argument> inputs) const {
  workspace w;
  std::vector<argument> outputs(state_->outputs.size());
  run(w, inputs, outputs);
  return outputs;
}

std::vector<argument> executable::run(const std::map<std::string, argument>& inputs) const {
  std::vector<argument> ordered(state_->inputs.size());
  for (const auto& [name, value] : inputs) ordered[input_index(name)] = value;
  for (std::size_t i = 0; i < ordered.size(); ++i)
    if (!inputs.contains(state_->inputs[i].name))
      raise(errc::invalid_argument,
            "every input is given: none for '" + state_->inputs[i].name + "' " + to_string(state_->inputs[i].type));
  return run(ordered);
}

}  // namespace kiln
