#include "kiln/runtime/profile.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "kiln/runtime/run_options.hpp"

namespace kiln {

std::vector<double> run_profile::median_ms(const compile_report& report) const {
  std::vector<std::vector<double>> times(report.steps.size());
  for (const step_time& s : steps) times.at(s.step).push_back(s.ms);
  std::vector<double> out;
  for (std::vector<double>& t : times) {
    const auto middle = t.begin() + static_cast<std::ptrdiff_t>(t.size() / 2);
    std::nth_element(t.begin(), middle, t.end());
    out.push_back(t.empty() ? 0 : *middle);
  }
  return out;
}

run_profile profile_runs(const executable& exe, workspace& w, std::span<const argument> inputs,
                         std::span<argument> outputs, std::size_t runs) {
  using clock = std::chrono::steady_clock;
  run_profile out;
  out.runs = runs;
  const clock::time_point start = clock::now();
  run_options options;
  options.profile = [&](std::size_t step, double seconds) {
    const double now = std::chrono::duration<double, std::milli>(clock::now() - start).count();
    out.steps.push_back({step, std::max(0.0, now - seconds * 1e3), seconds * 1e3});
  };
  for (std::size_t i = 0; i < runs; ++i) exe.run(w, inputs, outputs, options);
  return out;
}

std::string chrome_trace(const run_profile& profile, const compile_report& report) {
  using nlohmann::json;
  json events = json::array();
  events.push_back(
      {{"ph", "M"}, {"name", "process_name"}, {"pid", 1}, {"args", {{"name", "kiln, target " + report.target}}}});
  const auto texts = [](const std::vector<shape>& all) {
    json out = json::array();
    for (const shape& s : all) out.push_back(to_string(s));
    return out;
  };
  for (const step_time& t : profile.steps) {
    const step_info& s = report.steps.at(t.step);
    events.push_back({{"ph", "X"},
                      {"name", s.kernel},
                      {"cat", s.copy       ? "copy"
                              : s.fallback ? "fallback"
                                           : "kernel"},
                      {"ts", t.begin_ms * 1e3},
                      {"dur", t.ms * 1e3},
                      {"pid", 1},
                      {"tid", 1},
                      {"args",
                       {{"step", t.step},
                        {"instruction", s.instruction},
                        {"inputs", texts(s.inputs)},
                        {"outputs", texts(s.outputs)}}}});
  }
  const json out = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace kiln
