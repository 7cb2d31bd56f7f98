#include <fmt/format.h>

#include <optional>

#include "compare.hpp"
#include "debug.hpp"
#include "json.hpp"
#include "kiln/backend/reference/reference_target.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/runtime/run_options.hpp"
#include "model.hpp"
#include "progress.hpp"

namespace kiln::driver {

namespace {

// With no further pass.
executable compile_as_is(const program& p, const target& t, compile_options options) {
  options.passes = {};
  options.passes.simplify = options.passes.fuse = false;
  return compile(p, t, options);
}

executable compile_tested(const program& p, const verify_command& c) {
  return compile_as_is(p, *named_target(c.target, c.compiling), compile_options_of(c));
}

executable compile_reference(const program& p, const verify_command& c) {
  compile_options options;
  options.threads = c.compiling.threads;
  return compile_as_is(p, reference_target(), options);
}

argument view_of(const tensor& t) {
  return argument(shape(t.type, to_dims({t.lens.data(), t.lens.size()}), to_dims({t.strides.data(), t.strides.size()})),
                  t.data);
}

// Calls `see(step, results)` for each step that is no copy of the plan's own.
template <class F> void run_seeing(const executable& exe, const std::vector<argument>& inputs, F see) {
  std::vector<argument> outputs(exe.outputs().size());
  workspace w = exe.make_workspace();
  run_options options;
  options.observe = [&](std::size_t step, std::span<const tensor> results) {
    if (!exe.report().steps.at(step).copy) see(exe.report().steps[step], results);
  };
  exe.run(w, inputs, outputs, options);
}

// The first step of the optimized program whose results the target computes otherwise than the reference does.
std::optional<std::string> find_step(const program& optimized, const std::vector<argument>& inputs,
                                     const verify_command& c) {
  std::vector<std::vector<argument>> expected;
  run_seeing(compile_reference(optimized, c), inputs, [&](const step_info&, std::span<const tensor> results) {
    auto& kept = expected.emplace_back();
    for (const tensor& t : results) kept.push_back(view_of(t).copy());
  });
  std::optional<std::string> found;
  std::size_t at = 0;
  verify_command plain = c;
  plain.compiling.aliases.clear();  // the reference has a step for a concatenation that needs none in place
  run_seeing(compile_tested(optimized, plain), inputs, [&](const step_info& s, std::span<const tensor> results) {
    if (found || at == expected.size()) return;
    const auto& kept = expected[at++];
    for (std::size_t k = 0; k < std::min(kept.size(), results.size()) && !found; ++k)
      if (const difference d = compare_by_value(view_of(results[k]), kept[k], c.allowed))
        found = fmt::format("step {} {} from {}: {}", at - 1, s.kernel, s.instruction, d.reason);
  });
  return found;
}

// The first pass behind which the reference gives other outputs than before any pass.
std::optional<std::string> find_pass(const program& imported, const std::vector<argument>& inputs,
                                     const std::vector<argument>& expected, const verify_command& c) {
  struct context {
    const std::vector<argument>& inputs;
    const std::vector<argument>& expected;
    const verify_command& command;
    std::optional<std::string> found;
  } seen{inputs, expected, c, {}};
  pass_options passes = c.compiling.passes;
  passes.observer = {[](void* context_, const pass_note& note, const program& after) {
                       auto& s = *static_cast<context*>(context_);
                       if (s.found || !note.changed()) return;
                       const auto outputs = compile_reference(after, s.command).run(s.inputs);
                       for (std::size_t k = 0; k < outputs.size() && !s.found; ++k)
                         if (const difference d = compare_by_value(outputs[k], s.expected[k], s.command.allowed))
                           s.found = fmt::format("pass {}: output {}: {}", note.pass, k, d.reason);
                     },
                     &seen};
  const std::unique_ptr<target> where = named_target(c.target);
  if (!where->fuses()) passes.fuse = false;
  program p = imported;
  optimize(p, passes, where->passes());
  return seen.found;
}

}  // namespace

int verify(const verify_command& c) {
  const named_arguments given = read_inputs(c);
  const std::unique_ptr<target> where = named_target(c.target, c.compiling);
  program imported;
  const ready_model ready = load_ready(c, given, [&](program p, const compile_options&) {
    imported = std::move(p);
    return compile_reference(imported, c);
  });
  const executable& reference = ready.model.exe;
  const std::vector<argument>& arguments = ready.in.arguments;
  program optimized = imported;
  compile_options options = compile_options_of(c);
  if (!where->fuses()) options.passes.fuse = false;
  optimize(optimized, options.passes, where->passes());

  json listed = json::array();
  std::vector<argument> expected;
  bool equal = true;
  std::string lines;
  {
    const executable tested = compile_tested(optimized, c);
    const busy_line busy(fmt::format("running {} and the reference", c.target));
    log_executable(tested);
    expected = reference.run(arguments);
    const std::vector<argument> computed = run_once(tested, arguments, c);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const difference d = compare_by_value(computed[k], expected[k], c.allowed);
      equal = equal && !d;
      const std::string& name = reference.outputs()[k].name;
      lines += fmt::format("{} {}: {}\n", d ? "differs" : "equal  ", name,
                           d ? d.reason : fmt::format("greatest difference {:.3g}", d.worst));
      listed.push_back({{"name", name}, {"equal", !d}, {"worst", json_of(d.worst)}, {"reason", d.reason}});
    }
  }
  std::optional<std::string> first;
  if (!equal) {
    std::optional<busy_line> busy;
    if (!c.compiling.tune) busy.emplace("looking for the first difference");
    first = find_step(optimized, arguments, c);
    if (!first) first = find_pass(imported, arguments, expected, c);
    if (!first) first = "no single step or pass: small differences add up";
  }
  if (c.json) {
    json out = {{"model", c.model}, {"target", c.target}, {"equal", equal}, {"outputs", listed}};
    if (first) out["first_difference"] = *first;
    print_json(out);
  } else {
    fmt::print("{}", lines);
    if (first) fmt::print("first difference: {}\n", *first);
  }
  return equal ? 0 : 1;
}

}  // namespace kiln::driver
