#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "files.hpp"
#include "json.hpp"
#include "kiln/runtime/profile.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "statistics.hpp"
#include "step_costs.hpp"

namespace kiln::driver {

namespace {

constexpr std::size_t warm_up_runs = 2;
constexpr std::size_t traced_runs = 5;
constexpr double warm_up_share = 0.15;  // of the budget, before it

json json_of(const std::vector<step_info>& steps, const std::vector<step_cost>& costs) {
  json out = json::array();
  for (std::size_t i = 0; i < steps.size(); ++i)
    out.push_back({{"kernel", steps[i].kernel},
                   {"instruction", steps[i].instruction},
                   {"ms", costs[i].ms},
                   {"gflops", costs[i].gflops()},
                   {"gb_s", costs[i].gbytes()},
                   {"fallback", steps[i].fallback}});
  return out;
}

// The larger of a step's shares of what this machine can do, in percent.
double reached(const step_cost& c, const ceilings& most) {
  const auto share = [](double found, double of) { return of > 0 ? 100 * found / of : 0; };
  return std::max(share(c.gflops(), most.gflops), share(c.gbytes(), most.gbytes));
}

void print_steps(const std::vector<step_info>& steps, const std::vector<step_cost>& costs, const ceilings& most) {
  double total = 0;
  for (const step_cost& c : costs) total += c.ms;
  fmt::print("{:>10} {:>6} {:>9} {:>8} {:>8}  {}\n", "ms", "%", "GFLOP/s", "GB/s", "reached", "kernel");
  for (std::size_t i = 0; i < steps.size(); ++i)
    fmt::print("{:10.4f} {:6.1f} {:9.1f} {:8.1f} {:7.1f}%  {} {}\n", costs[i].ms,
               total > 0 ? 100 * costs[i].ms / total : 0, costs[i].gflops(), costs[i].gbytes(), reached(costs[i], most),
               steps[i].kernel, steps[i].instruction);
  fmt::print("{:10.4f} {:6.1f} {:>9} {:>8} {:>8}  all {} steps\n", total, 100.0, "", "", "", steps.size());
  fmt::print("{:>10} {:>6} {:9.1f} {:8.1f} {:>8}  {}\n", "", "", most.gflops, most.gbytes, "",
             "measured: a product of large matrices, a copy of large ones");
}

}  // namespace

int perf(const perf_command& c) {
  const named_arguments given = read_inputs(c);
  auto [model, in] = load_ready(c, given, compile_for_target(c), load_for_target(c));
  const executable& exe = model.exe;
  std::vector<argument> outputs = make_outputs(exe, in.arguments, c);
  workspace w = exe.make_workspace();

  double first_ms = 0;
  std::vector<double> times;
  std::vector<step_cost> costs;
  ceilings most;
  {
    const busy_line busy(fmt::format("timing {}", c.model));
    const auto once = [&] { exe.run(w, in.arguments, outputs); };
    first_ms = repeat(0, 1, once).front();
    repeat(c.budget_ms * warm_up_share, warm_up_runs, once);
    times = repeat(c.budget_ms, least_runs, once);
  }
  const std::size_t peak = peak_resident_bytes();
  if (c.per_kernel) {
    costs = measure_steps(exe, w, in, outputs, c.budget_ms);
    most = measure_ceilings(compile_for_target(c), c);
  }

  if (!c.trace.empty())
    write_file(c.trace, chrome_trace(profile_runs(exe, w, in.arguments, outputs, traced_runs), exe.report()));

  const statistics s = summarize(times);
  if (c.json) {
    json out = {
        {"model", c.model},     {"target", c.target}, {"threads", exe.pool().size()}, {"median_ms", s.median},
        {"min_ms", s.min},      {"p95_ms", s.p95},    {"load_ms", model.load_ms},     {"compile_ms", model.compile_ms},
        {"first_ms", first_ms}, {"peak_bytes", peak}, {"runs", times.size()},         {"workspace_bytes", w.bytes()}};
    out["packed_bytes"] = exe.report().packed_bytes;
    out["packed"] = report_object(exe.report())["packed"];
    if (c.per_kernel) {
      out["steps"] = json_of(exe.report().steps, costs);
      out["ceilings"] = {{"gflops", most.gflops}, {"gb_s", most.gbytes}};
    }
    print_json(out);
    return 0;
  }
  if (c.per_kernel) print_steps(exe.report().steps, costs, most);
  fmt::print("median_ms {:.4f}\nmin_ms {:.4f}\np95_ms {:.4f}\n", s.median, s.min, s.p95);
  fmt::print("load_ms {:.2f}\ncompile_ms {:.2f}\nfirst_ms {:.3f}\npeak_bytes {}\n", model.load_ms, model.compile_ms,
             first_ms, peak);
  fmt::print("packed_bytes {} {}\n", exe.report().packed_bytes, report_object(exe.report())["packed"].dump());
  fmt::print("runs {} on {} threads\n", times.size(), exe.pool().size());
  return 0;
}

}  // namespace kiln::driver
