#include <algorithm>

#include "kiln/runtime/impl/compile/free_constants.hpp"
#include "kiln/runtime/impl/run/compiled_program.hpp"
#include "kiln/runtime/impl/tune/tuning_data.hpp"
#include "kiln/runtime/kept_files.hpp"
#include "kiln/runtime/run_options.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln {
namespace {

// A program's plans, of which one is kept.
enum class variant : std::uint8_t { estimated, tuned, nchw };
constexpr std::string_view names[] = {"program as estimated", "program tuned", "program tuned, NCHW only"};

std::string key_of(const std::string& machine, const detail::compiled_program& p) {
  digest d;
  d.add(detail::computation_of(p.optimized, p.optimized.main()));
  for (const port& in : p.ports.inputs) d.add(to_string(in.type));
  return machine + ": program " + d.str();
}

// Whether a plan may be compared with others: its run needs nothing that can't be made up.
bool runs_alone(const detail::compiled_program& p, const compile_options& options) {
  const auto& inputs = p.ports.inputs;
  return p.runs->whole_plan() && options.aliases.empty() &&
         std::all_of(inputs.begin(), inputs.end(),
                     [](const port& p) { return p.type.is_constant() && !is_object(p.type.type); });
}

// A program with made-up inputs.
class trial {
 public:
  explicit trial(const detail::compiled_program& p) : program_(p), outputs_(p.ports.outputs.size()) {
    for (const port& in : p.ports.inputs) {
      inputs_.emplace_back(shape(in.type.type, in.type.lens));
      detail::fill_for_timing(inputs_.back());
    }
  }
  void run() { program_.run(memory_, inputs_, outputs_, {}); }

 private:
  const detail::compiled_program& program_;
  detail::run_memory memory_;
  std::vector<argument> inputs_, outputs_;
};

}  // namespace

void detail::make_tuned_steps(std::unique_ptr<compiled_program>& s, const target& t, const compile_options& options,
                              tuner& by) {
  const std::string machine = t.machine(s->pool->size());
  const bool near = constants_stay_near(s->optimized);
  if (t.has_device()) {  // whose kernels time candidates by themselves
    tuning_session session(by, std::string(t.name()));
    return make_steps(*s, t, options, {&session, true, near});
  }
  if (machine.empty()) {
    s->report.remarks.push_back("tuning: the target " + std::string(t.name()) + " has no kernels to choose from here");
    return make_steps(*s, t, options, {.near_constants = near});
  }
  struct candidate {
    variant which;
    std::unique_ptr<compiled_program> made;
    std::size_t changes, choices;
  };
  const auto build = [&](variant v) {
    tuning_session session(by, machine);
    auto made = std::make_unique<compiled_program>();
    made->optimized = s->optimized, made->report = s->report, made->ports = s->ports, made->pool = s->pool;
    made->flushes_denormals = s->flushes_denormals, made->binary_format = s->binary_format;
    make_steps(*made, t, options, {v == variant::estimated ? nullptr : &session, v != variant::nchw, near});
    return candidate{v, std::move(made), session.changes(), session.choices()};
  };
  const std::string key = key_of(machine, *s);
  std::vector<std::string> remarks;
  // Of the two, the one whose run takes less time as a whole; the first where the other gains less than the margin.
  const auto shorter = [&](candidate first, candidate second, double margin) {
    const std::string both[] = {std::string(names[static_cast<std::size_t>(first.which)]),
                                std::string(names[static_cast<std::size_t>(second.which)])};
    tuning_result result;
    try {
      trial x(*first.made), y(*second.made);
      const std::function<void()> runs[] = {[&] { x.run(); }, [&] { y.run(); }};
      result = by.best_of(both, runs, margin);
    } catch (const error& e) {
      remarks.push_back(std::string("tuning: the whole can't run on made-up inputs: ") + e.what());
      return first;
    }
    if (by.options().measured) by.options().measured(key, both, result);
    return std::move(result.best == 1 ? second : first);
  };

  const auto found = by.cache().find(key);
  const auto known = found ? std::find(std::begin(names), std::end(names), *found) : std::end(names);
  candidate best = build(known == std::end(names) ? variant::tuned : static_cast<variant>(known - std::begin(names)));
  if (known == std::end(names) && runs_alone(*best.made, options)) {
    constexpr double any_gain = 0.005, clear_gain = 0.03;
    const bool nhwc = best.made->runs->whole_plan()->nhwc_results != 0;
    if (best.changes != 0) best = shorter(build(variant::estimated), std::move(best), any_gain);
    if (nhwc) best = shorter(std::move(best), build(variant::nchw), clear_gain);
    by.cache().keep(key, names[static_cast<std::size_t>(best.which)]);
  }
  s = std::move(best.made);
  auto& report = s->report.remarks;
  report.push_back("tuning: " + std::string(names[static_cast<std::size_t>(best.which)]) + "; " +
                   std::to_string(best.changes) + " of " + std::to_string(best.choices) +
                   " kernels with a choice are others than estimated");
  report.insert(report.end(), remarks.begin(), remarks.end());
  if (const std::string wrong = by.cache().remark(); !wrong.empty()) report.push_back(wrong);
}

}  // namespace kiln
