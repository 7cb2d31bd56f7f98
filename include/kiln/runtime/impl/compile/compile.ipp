#include <chrono>

#include "kiln/core/page_memory.hpp"
#include "kiln/pass/constants_stay_stored.hpp"
#include "kiln/pass/lent_threads.hpp"
#include "kiln/runtime/impl/compile/free_constants.hpp"
#include "kiln/runtime/impl/run/executable_access.hpp"
#include "kiln/runtime/impl/run/planned_program.hpp"
#include "kiln/runtime/impl/segment/segments.hpp"
#include "kiln/runtime/options.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

double milliseconds_since(clock::time_point start) {
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
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

}  // namespace

namespace detail {
namespace {

// Big constants stay where plans hold them, as they hold them; the others are packed, or nothing reads them.
void release_constants(compiled_program& of, const held_constants& held) {
  program& p = of.optimized;
  for (std::uint32_t k = 0; k < p.modules(); ++k)
    for (std::uint32_t i = 0; i < p.module({k}).size(); ++i) {
      auto& ins = p.module({k})[i];
      if (ins.kind != instruction_kind::literal || ins.constant.has_symbols()) continue;
      const auto at = held.find(ins.constant.bytes());
      const bool there = at != held.end() && at->second.data().size() >= ins.constant.data().size();
      if (there && !of.on_device) {
        ins.constant = literal(ins.results[0], at->second.data());
        continue;
      }
      if (there && ins.constant.data().size() > most_kept_bytes)
        of.device_constants.push_back({k, i, at->second.data()});
      free_constant(ins);
    }
}

// How a program runs: by one plan, or by segments.
void make_runner(compiled_program& p, const target& t, const compile_options& options, const plan_choices& choices) {
  p.ports.take_outputs(p.optimized);
  if (has_segments(p.optimized)) {
    p.runs = make_segmented_program(p, t, choices, options.aliases);
    return;
  }
  plan made = make_plan(p.optimized, t, options, choices, *p.pool, p.report.remarks);
  p.report.steps = std::move(made.infos);
  p.report.constant_bytes = made.constant_bytes;
  p.runs =
      t.has_device() ? make_device_program(std::move(made), p, t, choices.held) : make_host_program(std::move(made), p);
}

}  // namespace

void make_steps(compiled_program& p, const target& t, const compile_options& options, plan_choices choices) {
  held_constants held;
  choices.derived = &p.derived;
  choices.held = &held;
  p.on_device = t.has_device(), p.where = t.get_device();
  p.near_constants = choices.near_constants, p.allow_nhwc = choices.allow_nhwc, p.aliases = options.aliases;
  make_runner(p, t, options, choices);
  release_constants(p, held);
  for (const step_info& i : p.report.steps) p.report.packed_bytes += i.packed_bytes;
}

std::shared_ptr<thread_pool> pool_of(const compile_options& options) {
  return options.pool      ? options.pool
         : options.threads ? std::make_shared<thread_pool>(options.threads)
                           : default_pool();
}

std::unique_ptr<const compiled_program> compile_part(program p, const target& t, std::shared_ptr<thread_pool> pool,
                                                     const plan_choices& choices, std::vector<output_alias> aliases) {
  auto made = std::make_unique<compiled_program>();
  made->pool = std::move(pool);
  made->flushes_denormals = t.flushes_denormals();
  made->ports.take_inputs(p);
  made->optimized = std::move(p);
  compile_options options;
  options.aliases = std::move(aliases);
  make_runner(*made, t, options, choices);
  made->on_device = t.has_device();
  release_constants(*made, {});
  return made;
}

}  // namespace detail

executable compile(program p, const target& t, const compile_options& options) {
  bind_weights(p, options.weights);
  return options.cache.empty() ? detail::compile_bound(std::move(p), t, options)
                               : detail::compile_cached(std::move(p), t, options);
}

executable detail::compile_bound(program p, const target& t, const compile_options& options) {
  auto s = std::make_unique<detail::compiled_program>();
  s->pool = detail::pool_of(options);
  const page_scope pages(s->pool->size() > 1);
  s->ports.take_inputs(p);
  s->report.target = t.name();
  s->binary_format = t.binary_format();
  for (const compile_option& o : compile_option_table()) s->options.emplace_back(o.name, o.get(options));
  s->report.remarks = options.remarks;
  s->flushes_denormals = t.flushes_denormals();
  if (s->flushes_denormals) s->report.remarks.emplace_back("denormal floats read and round to zero");
  clock::time_point start = clock::now();
  pass_options passes = options.passes;
  if (!t.fuses()) passes.fuse = false;
  // Workers of a pool flush denormals.
  std::optional<detail::lent_threads> lent;
  if (s->flushes_denormals)
    lent.emplace([pool = s->pool](std::int64_t parts, const std::function<void(std::int64_t)>& f) {
      pool->parallel_for(parts, [&](std::int64_t part, unsigned) { f(part); });
    });
  const constants_stay_stored scope(!t.has_device());
  for (pass_note& n : optimize(p, passes, t.passes())) {
    for (const text& remark : n.remarks)
      s->report.remarks.push_back(std::string(n.pass) + ": " + std::string(remark.view()));
    s->report.passes.push_back(std::move(n));
  }
  lent.reset();
  s->report.optimize_ms = milliseconds_since(start);

  start = clock::now();
  s->optimized = std::move(p);
  if (options.tuning) {
    detail::make_tuned_steps(s, t, options, *options.tuning);
  } else if (options.tune) {
    tuner own(tuning_options_of(options));
    detail::make_tuned_steps(s, t, options, own);
  } else {
    detail::make_steps(*s, t, options, {.near_constants = detail::constants_stay_near(s->optimized)});
  }
  s->report.plan_ms = milliseconds_since(start);
  return executable_access::make(std::move(s));
}

}  // namespace kiln
