#include <atomic>
#include <chrono>

#include "kiln/pass/parts.hpp"
#include "kiln/runtime/cache_size.hpp"
#include "kiln/runtime/impl/branches.hpp"
#include "kiln/runtime/impl/constant_readers.hpp"
#include "kiln/runtime/impl/executable_state.hpp"
#include "kiln/runtime/rewriting_target.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> made{0};
  return ++made;
}

double milliseconds_since(clock::time_point start) {
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

// Bytes of results from which stores past the caches gain: within the last caches of the workers, lines that are asked
// for early and written there took a quarter less time; half of them, because operands lie there too.
std::size_t most_cached(unsigned workers) {
  static const shared_cache each = last_cache();
  return each.bytes * ((workers + each.processors - 1) / each.processors) / 2;
}

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

// The plan holds what it reads.
void release_literals(program& p) {
  for (std::uint32_t i = 0; i < p.main().size(); ++i)
    if (p.main()[i].kind == instruction_kind::literal) detail::free_constant(p.main()[i]);
}

}  // namespace

void detail::executable_access::take_inputs(executable::state& s, const program& p) {
  for (value_id v : p.main().parameters()) {
    s.inputs.push_back({p.main()[v.instruction].name.str(), p.main().shape_of(v)});
    const dims& lens = s.inputs.back().type.lens;
    for (std::size_t d = 0; d < lens.size(); ++d)
      if (is_symbol(lens[d])) s.symbols.push_back({s.inputs.size() - 1, d, lens[d]});
  }
}

void detail::executable_access::place_on_device(executable::state& s, const target& t) {
  s.for_device = true;
  s.where = t.get_device();
  s.copy = t.make_copy();
  s.recordable = true;
  for (const detail::step& st : s.plan.steps) {
    s.recordable = s.recordable && st.run->on_device();
    s.reports_faults = s.reports_faults || st.run->reports_faults();
  }
}

void detail::executable_access::make_steps(executable::state& s, const target& t, const compile_options& options,
                                           const plan_choices& choices) {
  const module_graph& m = s.optimised.main();
  bool staged = false;
  for (std::uint32_t i = 0; i < m.size(); ++i) staged = staged || runs_on_host(m, i);
  // an object is handed on by the host alone
  for (const value_id v : m.outputs) staged = staged || is_object(m.shape_of(v).type);
  if (staged) {
    if (!options.aliases.empty())
      raise(errc::unsupported,
            "output '" + options.aliases[0].output + "' can't grow in place: only a run knows sizes of this program");
    s.stages.emplace(make_staging(s.optimised, t, s.pool, choices.near_constants, s.report));
  } else {
    s.plan = make_plan(s.optimised, t, options, choices, *s.pool, s.report.remarks);
    s.most_cached = most_cached(s.pool->size());
    s.report.steps = std::move(s.plan.infos);
    s.report.constant_bytes = s.plan.constant_bytes;
    if (t.has_device())
      place_on_device(s, t);
    else if (s.flushes_denormals && s.pool->size() > 1)  // as the pool's workers do
      find_groups(s.plan, s.report.steps);
    s.prepare_constant_sizes();
    if (s.where) s.upload_constants();
  }
  for (std::size_t k = 0; k < m.outputs.size(); ++k)
    s.outputs.push_back({m.output_names[k].str(), m.shape_of(m.outputs[k])});
}

executable detail::executable_access::plan(program p, const target& t, std::shared_ptr<thread_pool> pool,
                                           bool near_constants) {
  auto s = std::make_unique<executable::state>();
  s->id = next_id();
  s->pool = std::move(pool);
  s->flushes_denormals = t.flushes_denormals();
  take_inputs(*s, p);
  s->optimised = std::move(p);
  make_steps(*s, t, {}, {.near_constants = near_constants});
  release_literals(s->optimised);
  return executable(std::move(s));
}

executable compile(program p, const target& t, const compile_options& options) {
  using access = detail::executable_access;
  auto s = std::make_unique<executable::state>();
  s->id = next_id();
  s->pool = options.pool      ? options.pool
            : options.threads ? std::make_shared<thread_pool>(options.threads)
                              : default_pool();
  bind_weights(p, options.weights);
  access::take_inputs(*s, p);
  s->report.target = t.name();
  s->report.remarks = options.remarks;
  s->flushes_denormals = t.flushes_denormals();
  if (s->flushes_denormals) s->report.remarks.push_back("denormal floats read and round to zero");
  clock::time_point start = clock::now();
  pass_options passes = options.passes;
  if (!t.fuses()) passes.fuse = false;
  // Workers of a pool flush denormals.
  std::optional<detail::lent_threads> lent;
  if (s->flushes_denormals)
    lent.emplace([pool = s->pool](std::int64_t parts, const std::function<void(std::int64_t)>& f) {
      pool->parallel_for(parts, [&](std::int64_t part, unsigned) { f(part); });
    });
  for (pass_note& n : optimise(p, passes, passes_of(t))) {
    for (const text& remark : n.remarks)
      s->report.remarks.push_back(std::string(n.pass) + ": " + std::string(remark.view()));
    s->report.passes.push_back(std::move(n));
  }
  lent.reset();
  s->report.optimise_ms = milliseconds_since(start);

  start = clock::now();
  s->optimised = std::move(p);
  if (options.tuning)
    access::make_tuned_steps(s, t, options);
  else
    access::make_steps(*s, t, options, {.near_constants = detail::constants_stay_near(s->optimised)});
  for (const step_info& i : s->report.steps) s->report.packed_bytes += i.packed_bytes;
  release_literals(s->optimised);
  s->report.plan_ms = milliseconds_since(start);
  return executable(std::move(s));
}

}  // namespace kiln
