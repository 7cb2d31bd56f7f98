#include "kiln/runtime/executable.hpp"

#include <algorithm>
#include <chrono>

#include "kiln/runtime/impl/plan.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

double milliseconds_since(clock::time_point start) {
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

constexpr std::size_t alignment = 64;
std::size_t aligned(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }

// Replaces weight parameters by their values.
void bind_weights(program& p, const std::map<std::string, argument>& weights) {
  module_graph& m = p.main();
  for (const auto& [name, value] : weights) {
    const value_id v = m.find_parameter(name);
    if (!v || !m[v.instruction].is_weight)
      raise(errc::not_found,
            "weights are parameters of the program that were declared as weights: found '" + name + "'");
    const shape& expected = m.shape_of(v);
    if (!(value.get_shape().type == expected.type && value.get_shape().lens == expected.lens)) {
      error e(fault::of(errc::shape_mismatch, "type of the weight's value", expected, value.get_shape()));
      throw e.at_instruction(name);
    }
    m[v.instruction].kind = instruction_kind::literal;
    m[v.instruction].is_weight = false;
    m[v.instruction].constant = value.to_literal();
  }
  for (value_id v : m.parameters())
    if (m[v.instruction].is_weight)
      raise(errc::not_found, "every weight has a value: none for '" + m[v.instruction].name.str() + "'");
}

// The plan holds what it reads; big constants that kernels keep packed are freed. The graph stays for reports, in which
// such a literal has a shape but no data.
void release_literals(program& p) {
  constexpr std::size_t kept = 65536;
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    if (p.main()[i].kind == instruction_kind::literal && p.main()[i].constant.data().size() > kept)
      p.main()[i].constant = literal(p.main()[i].results[0], buffer());
}

}  // namespace

struct executable::state {
  program optimised;
  detail::plan plan;
  compile_report report;
  std::vector<port> inputs, outputs;
  std::shared_ptr<thread_pool> pool;
  std::vector<dimension> symbols;

  void bind_sizes(workspace::state& w, std::span<const shape> given) const;
  void place_arena(workspace::state& w) const;
  void check_type(const port& p, const shape& given, const char* what) const;
};

struct workspace::state {
  const void* owner = nullptr;
  std::vector<std::int64_t> bound;  // extents of the inputs, flattened: what the rest was computed for
  bindings values;
  std::vector<std::int64_t> sizes;
  std::vector<tensor> tensors;
  std::vector<std::size_t> offsets;  // of arena storages
  std::vector<std::byte*> bases;
  buffer arena;
  std::size_t scratch_offset = 0, scratch_bytes = 0, needed = 0, growths = 0;
};

workspace::workspace() : state_(std::make_unique<state>()) {}
workspace::workspace(workspace&&) noexcept = default;
workspace& workspace::operator=(workspace&&) noexcept = default;
workspace::~workspace() = default;
std::size_t workspace::bytes() const { return state_->arena.size(); }
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

executable compile(program p, const target& t, const compile_options& options) {
  auto s = std::make_unique<executable::state>();
  s->pool = options.pool      ? options.pool
            : options.threads ? std::make_shared<thread_pool>(options.threads)
                              : default_pool();
  bind_weights(p, options.weights);
  for (value_id v : p.main().parameters()) {
    s->inputs.push_back({p.main()[v.instruction].name.str(), p.main().shape_of(v)});
    for (dimension d : s->inputs.back().type.lens)
      if (is_symbol(d) && std::find(s->symbols.begin(), s->symbols.end(), d) == s->symbols.end())
        s->symbols.push_back(d);
  }
  s->report.target = t.name();
  clock::time_point start = clock::now();
  pass_options passes = options.passes;
  if (!t.fuses()) passes.fuse = false;
  for (pass_note& n : optimise(p, passes)) s->report.passes.push_back(std::move(n));
  s->report.optimise_ms = milliseconds_since(start);

  start = clock::now();
  s->optimised = std::move(p);
  s->plan = detail::make_plan(s->optimised, t, *s->pool, s->report.remarks);
  for (std::size_t k = 0; k < s->optimised.main().outputs.size(); ++k)
    s->outputs.push_back(
        {s->optimised.main().output_names[k].str(), s->optimised.main().shape_of(s->optimised.main().outputs[k])});
  s->report.steps = std::move(s->plan.infos);
  s->report.constant_bytes = s->plan.constant_bytes;
  for (const step_info& i : s->report.steps) s->report.packed_bytes += i.packed_bytes;
  release_literals(s->optimised);
  s->report.plan_ms = milliseconds_since(start);
  return executable(std::move(s));
}

void executable::state::check_type(const port& p, const shape& given, const char* what) const {
  bool fits = given.type == p.type.type && given.rank() == p.type.rank() && given.is_constant();
  for (std::size_t d = 0; fits && d < given.rank(); ++d)
    fits = !p.type.lens[d].is_constant() || p.type.lens[d] == given.lens[d];
  if (fits) return;
  raise(errc::shape_mismatch,
        std::string(what) + " '" + p.name + "': expected " + to_string(p.type) + ", found " + to_string(given));
}

void executable::state::bind_sizes(workspace::state& w, std::span<const shape> given) const {
  if (given.size() != inputs.size())
    raise(fault::of(errc::invalid_argument, "number of inputs", inputs.size(), given.size()));
  bool same = w.owner == this;
  std::size_t at = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    check_type(inputs[i], given[i], "input");
    for (dimension d : given[i].lens) {
      if (at == w.bound.size()) w.bound.push_back(-1), same = false;
      if (w.bound[at] != d.raw()) w.bound[at] = d.raw(), same = false;
      ++at;
    }
  }
  w.bound.resize(at);
  if (same) return;
  w.owner = nullptr;  // until everything below has succeeded
  w.values.clear();
  for (std::size_t i = 0; i < given.size(); ++i)
    for (std::size_t d = 0; d < given[i].rank(); ++d)
      if (is_symbol(inputs[i].type.lens[d])) w.values.bind(inputs[i].type.lens[d], given[i].lens[d].raw());
  w.sizes.resize(plan.sizes.size());
  plan.sizes.evaluate(w.values, w.sizes.data());
  for (std::size_t i = 0; i < given.size(); ++i)
    for (std::size_t d = 0; d < given[i].rank(); ++d)
      if (const std::int64_t expected = w.values.evaluate(inputs[i].type.lens[d]); expected != given[i].lens[d].raw())
        raise(errc::shape_mismatch, "input '" + inputs[i].name + "' dimension " + std::to_string(d) + " (" +
                                        to_string(inputs[i].type.lens[d]) + "): expected " + std::to_string(expected) +
                                        ", found " + std::to_string(given[i].lens[d].raw()));
  for (const detail::obligation& o : plan.obligations)
    if (w.sizes[o.left] != w.sizes[o.right])
      raise(errc::shape_mismatch,
            o.rule + ": expected " + std::to_string(w.sizes[o.right]) + ", found " + std::to_string(w.sizes[o.left]));
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
  }
  place_arena(w);
  w.owner = this;
}

// Offsets by liveness: storages in order of first use; each takes the lowest gap among those alive at the same time.
void executable::state::place_arena(workspace::state& w) const {
  const auto& storages = plan.storages;
  w.offsets.assign(storages.size(), 0);
  w.bases.assign(storages.size(), nullptr);
  std::vector<std::uint32_t> live;
  std::vector<std::pair<std::size_t, std::size_t>> taken;
  std::size_t end = 0;
  const auto bytes_of = [&](std::uint32_t s) {
    return aligned(static_cast<std::size_t>(w.sizes[storages[s].bytes_slot]));
  };
  std::vector<std::uint32_t> order;
  for (std::uint32_t s = 0; s < storages.size(); ++s) {
    const detail::storage& st = storages[s];
    if (st.kind == detail::place_kind::symbolic) {  // filled when bound, so never shared
      w.offsets[s] = end;
      end += bytes_of(s);
    } else if (st.kind == detail::place_kind::arena && st.first != 0xffff'ffff) {
      order.push_back(s);
    }
  }
  const std::size_t floor = end;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return storages[a].first < storages[b].first; });
  for (std::uint32_t s : order) {
    std::erase_if(live, [&](std::uint32_t other) { return storages[other].last < storages[s].first; });
    taken.clear();
    for (std::uint32_t other : live) taken.emplace_back(w.offsets[other], w.offsets[other] + bytes_of(other));
    std::sort(taken.begin(), taken.end());
    std::size_t at = floor;
    for (const auto& [from, to] : taken) {
      if (at + bytes_of(s) <= from) break;
      at = std::max(at, to);
    }
    w.offsets[s] = at;
    end = std::max(end, at + bytes_of(s));
    live.push_back(s);
  }
  w.scratch_offset = end;
  w.scratch_bytes = 0;
  for (const detail::step& st : plan.steps) {
    const std::span<const tensor> all(w.tensors.data() + st.first_operand, st.inputs + st.outputs);
    w.scratch_bytes =
        std::max(w.scratch_bytes, st.run->scratch_bytes(all.first(st.inputs), all.subspan(st.inputs), pool->size()));
  }
  w.needed = end + aligned(w.scratch_bytes);
  if (w.arena.size() < w.needed) {
    w.arena = buffer();  // the old one goes before the new one comes
    w.arena = buffer::allocate(w.needed);
    ++w.growths;
  }
  for (std::uint32_t s = 0; s < storages.size(); ++s) {
    const detail::storage& st = storages[s];
    if (st.kind == detail::place_kind::arena || st.kind == detail::place_kind::symbolic)
      w.bases[s] = w.arena.data() + w.offsets[s];
    else if (st.kind == detail::place_kind::constant)
      w.bases[s] = const_cast<std::byte*>(st.constant.bytes());  // kernels only read their inputs
    if (st.kind == detail::place_kind::symbolic) {
      std::int64_t n = 0;
      const dtype type = st.constant.get_shape().type;
      for (dimension d : *st.constant.data().values<dimension>()) {
        const std::int64_t v = w.values.evaluate(d);
        encode(type, &v, w.bases[s] + n++ * static_cast<std::int64_t>(size_of(type)), 1);
      }
    }
  }
}

void executable::bind(workspace& w, std::span<const shape> inputs) const { state_->bind_sizes(*w.state_, inputs); }

std::vector<shape> executable::output_shapes(std::span<const shape> inputs) const {
  workspace w;
  bind(w, inputs);
  std::vector<shape> out;
  for (const port& p : state_->outputs) {
    shape s = p.type;
    for (dimension& d : s.lens) d = w.state_->values.evaluate(d);
    out.push_back(s);
  }
  return out;
}

void executable::run(workspace& w, std::span<const argument> inputs, std::span<argument> outputs,
                     const run_options& options) const {
  workspace::state& ws = *w.state_;
  inline_vector<shape, 64> few;
  std::vector<shape> many;
  if (inputs.size() <= 64)
    for (const argument& a : inputs) few.push_back(a.get_shape());
  else
    for (const argument& a : inputs) many.push_back(a.get_shape());
  state_->bind_sizes(ws, inputs.size() <= 64 ? std::span<const shape>(few) : std::span<const shape>(many));
  if (outputs.size() != state_->outputs.size())
    raise(fault::of(errc::invalid_argument, "number of outputs", state_->outputs.size(), outputs.size()));

  const auto& storages = state_->plan.storages;
  std::vector<argument> staged;  // row-major copies of inputs that the caller passed with strides
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (storages[s].kind == detail::place_kind::input) {
      const argument& a = inputs[storages[s].index];
      if (a.get_shape().standard()) {
        ws.bases[s] = const_cast<std::byte*>(a.data());  // kernels only read their inputs
      } else {
        staged.push_back(a.copy());
        ws.bases[s] = staged.back().data();
      }
    } else if (storages[s].kind == detail::place_kind::output) {
      ws.bases[s] = outputs[storages[s].index].data();
    }
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const detail::operand& o = state_->plan.outputs[k];
    const shape& given = outputs[k].get_shape();
    bool fits = given.type == o.type && given.rank() == o.lens.size() && given.standard();
    for (std::size_t d = 0; fits && d < o.lens.size(); ++d) fits = given.lens[d] == dimension(ws.sizes[o.lens[d]]);
    if (!fits) {
      shape expected{o.type, {}};
      for (std::uint32_t slot : o.lens) expected.lens.push_back(ws.sizes[slot]);
      raise(errc::shape_mismatch, "output '" + state_->outputs[k].name + "': expected row-major " +
                                      to_string(expected) + ", found " + to_string(given));
    }
  }
  for (std::size_t k = 0; k < ws.tensors.size(); ++k) {
    const detail::operand& o = state_->plan.operands[k];
    ws.tensors[k].data = ws.bases[o.storage] + ws.sizes[o.offset] * static_cast<std::int64_t>(size_of(o.type));
  }
  for (std::size_t i = 0; i < state_->plan.steps.size(); ++i) {
    if (options.cancel && options.cancel->load(std::memory_order_relaxed))
      raise(errc::cancelled, "the run was stopped before step " + std::to_string(i));
    const detail::step& st = state_->plan.steps[i];
    const std::span<const tensor> all(ws.tensors.data() + st.first_operand, st.inputs + st.outputs);
    const launch l{all.first(st.inputs),
                   all.subspan(st.inputs),
                   {ws.arena.data() + ws.scratch_offset, ws.scratch_bytes},
                   state_->pool.get(),
                   &ws.values};
    const auto start = options.profile ? clock::now() : clock::time_point();
    try {
      st.run->run(l);
    } catch (error& e) {
      e.at_instruction(state_->report.steps[i].instruction);
      throw;
    }
    if (options.profile) options.profile(i, std::chrono::duration<double>(clock::now() - start).count());
    if (options.observe) options.observe(i, l.out);
  }
}

std::vector<argument> executable::run(std::span<const argument> inputs) const {
  std::vector<shape> given;
  for (const argument& a : inputs) given.push_back(a.get_shape());
  workspace w;
  bind(w, given);
  std::vector<argument> outputs;
  for (const port& p : state_->outputs) {
    shape s = p.type;
    for (dimension& d : s.lens) d = w.state_->values.evaluate(d);
    outputs.emplace_back(s);
  }
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
