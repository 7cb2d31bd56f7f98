#include "step_costs.hpp"

#include "kiln/graph/builder.hpp"
#include "kiln/runtime/run_options.hpp"
#include "statistics.hpp"

namespace kiln::driver {

namespace {

// An amount under the run's sizes; 0 where it hangs on a size that only a run of the step knows.
double amount(dimension d, const bindings& symbols) {
  small_vector<dimension> needed;
  collect_symbols(d, needed);
  for (dimension s : needed)
    if (!symbols.find(s)) return 0;
  return static_cast<double>(symbols.evaluate(d));
}

}  // namespace

std::vector<step_cost> measure_steps(const executable& exe, workspace& w, const prepared_inputs& in,
                                     std::vector<argument>& outputs, double budget_ms) {
  const std::vector<step_info>& steps = exe.report().steps;
  std::vector<std::vector<double>> times(steps.size());
  run_options options;
  options.profile = [&](std::size_t step, double seconds) { times.at(step).push_back(seconds * 1e3); };
  repeat(budget_ms, least_runs, [&] { exe.run(w, in.arguments, outputs, options); });
  std::vector<step_cost> out;
  for (std::size_t i = 0; i < steps.size(); ++i)
    out.push_back({summarize(std::move(times[i])).median, amount(steps[i].flops, in.symbols),
                   amount(steps[i].bytes, in.symbols)});
  return out;
}

ceilings measure_ceilings(const compiler& make, const model_options& o) {
  const bool gpu = o.target.starts_with("hip"), plain = o.target == "reference";
  const dtype t = gpu ? dtype::f16 : dtype::f32;
  const std::int64_t side = gpu ? 4096 : plain ? 128 : 1024, edge = gpu ? 8192 : plain ? 512 : 4096;
  constexpr double budget_ms = 20;
  const auto cost_of = [&](const auto& build) {
    builder b;
    build(b);
    compile_options options = compile_options_of(o);
    options.aliases.clear();  // of the model
    const executable exe = make(b.finish(), options);
    model_options plain_inputs;
    plain_inputs.seed = o.seed;
    const prepared_inputs in = prepare_inputs(exe.inputs(), {}, plain_inputs);
    std::vector<argument> outputs = exe.make_outputs(in.shapes());
    workspace w = exe.make_workspace();
    step_cost sum;
    for (const step_cost& c : measure_steps(exe, w, in, outputs, budget_ms))
      sum = {sum.ms + c.ms, sum.flops + c.flops, sum.bytes + c.bytes};
    return sum;
  };
  const step_cost product = cost_of([&](builder& b) {
    b.output(b.input("x", t, {side, side}).dot(b.input("w", t, {side, side})));
  });
  const step_cost copy = cost_of([&](builder& b) { b.output(b.input("x", t, {edge, edge}) + b.scalar(t, 1.0f)); });
  return {product.gflops(), copy.gbytes()};
}

}  // namespace kiln::driver
