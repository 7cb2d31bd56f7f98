// Prints each step of a model beside its own bound (bounds.hpp), a line each: median and shortest us in profiled runs,
// us of its products and of its bytes at the measured rates, kernel, extents of its operands and results, and the
// instruction; then a line for the whole: us of a run without a profile, and the sums.
//
//     bench_steps CASES.txt [--only TEXT] [--part K/N] [--threads 2] [--budget-ms 400] [--vectors]
//
// operator_cases.hpp says what CASES.txt holds. With --vectors no matrix unit is used, neither by the steps nor for
// the rate. A step's bytes lie where a step alone would find them, so that a bound is reached by no network whose
// results exceed the caches; what exceeds it by far says where the time is.
#include <fmt/format.h>

#include <filesystem>

#include "bounds.hpp"
#include "kiln/runtime/profile.hpp"
#include "operator_cases.hpp"

namespace {

using namespace kiln;

struct settings : bench::case_selection {
  double budget_ms = 400;
  bool vectors = false;
};

std::string extents_of(const std::vector<shape>& shapes) {
  std::string text;
  for (const shape& s : shapes) {
    if (!text.empty()) text += ' ';
    for (std::size_t d = 0; d < s.rank(); ++d) {
      if (d != 0) text += 'x';
      text += s.lens[d].is_constant() ? std::to_string(s.lens[d].value()) : "?";
    }
  }
  return text;
}

void print_steps(const bench::case_row& row, const settings& s, const bench::machine_rates& most) {
  const std::filesystem::path model = std::filesystem::path(s.list).parent_path() / row.file;
  const std::string bytes = bench::read_file(model);
  const auto named = bench::inputs_of(row, std::as_bytes(std::span(bytes)));
  const executable own = bench::load(s, model);
  std::vector<argument> inputs;
  for (const port& p : own.inputs()) inputs.push_back(named.at(p.name));
  const bindings sizes = bench::sizes_of(own, inputs);
  std::vector<argument> outputs = own.run(inputs);
  workspace w = own.make_workspace();
  const bench::timing whole = bench::time_ms(s.budget_ms, [&] { own.run(w, inputs, outputs); });
  const auto runs = static_cast<std::size_t>(std::max(10.0, s.budget_ms / std::max(whole.median, 1e-3)));
  const run_profile profile = profile_runs(own, w, inputs, outputs, runs);
  const std::vector<double> ms = profile.median_ms(own.report());
  std::vector<double> shortest(ms.size(), INFINITY);
  for (const step_time& t : profile.steps) shortest[t.step] = std::min(shortest[t.step], t.ms);
  const auto& steps = own.report().steps;
  const std::vector<bench::step_bound> bounds = bench::step_bounds(own.report(), sizes, most);
  double sum = 0, bound = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    fmt::print("{}\t{:.2f}\t{:.2f}\t{:.2f}\t{:.2f}\t{}\t{} > {}\t{}\n", row.name, ms[i] * 1e3, shortest[i] * 1e3,
               bounds[i].products * 1e3, bounds[i].bytes * 1e3, steps[i].kernel, extents_of(steps[i].inputs),
               extents_of(steps[i].outputs), steps[i].instruction);
    sum += ms[i], bound += bounds[i].ms();
  }
  fmt::print("{}, {} steps\t{:.1f} in a run (best {:.1f}), {:.1f} profiled, bound {:.1f}\n", row.name, steps.size(),
             whole.median * 1e3, whole.best * 1e3, sum * 1e3, bound * 1e3);
}

settings read_settings(int argc, char** argv) {
  settings s;
  s.list = bench::read_options(argc, argv, [&](const std::string& word, const auto& next) {
    if (word == "--budget-ms")
      s.budget_ms = std::stod(next());
    else if (word == "--vectors")
      s.vectors = true;
    else
      return s.take(word, next);
    return true;
  });
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const settings s = read_settings(argc, argv);
  if (s.vectors) eigen_target::forbid_matrix_unit();
  const bench::machine_rates most = bench::measure_rates(s.threads);
  for (const bench::case_row& row : bench::read_cases(s)) print_steps(row, s, most);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 2;
}
