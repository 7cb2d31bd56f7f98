#include <algorithm>

#include "kiln/runtime/impl/constant_readers.hpp"
#include "kiln/runtime/impl/executable_state.hpp"
#include "kiln/runtime/impl/tuning_data.hpp"
#include "kiln/runtime/kept_files.hpp"
#include "kiln/runtime/thread_pool.hpp"
#include "kiln/runtime/tuner.hpp"

namespace kiln {
namespace {

using access = detail::executable_access;

// A program's plans, of which one is kept.
enum class variant : std::uint8_t { estimated, tuned, planes };
constexpr std::string_view names[] = {"program as estimated", "program tuned", "program tuned, images by planes"};

template <class State>
std::string key_of(const std::string& machine, const State& s) {
  digest d;
  d.add(detail::computation_of(s.optimised, s.optimised.main()));
  for (const port& p : s.inputs) d.add(to_string(p.type));
  return machine + ": program " + d.str();
}

// Whether a plan may be compared with others: its run needs nothing that can't be made up.
template <class State>
bool runs_alone(const State& s, const compile_options& options) {
  return !s.stages && options.aliases.empty() && std::all_of(s.inputs.begin(), s.inputs.end(), [](const port& p) {
    return p.type.is_constant() && !is_object(p.type.type);
  });
}

// A program with made-up inputs.
class trial {
 public:
  explicit trial(const executable& e) : exe_(e) {
    for (const port& p : e.inputs()) {
      inputs_.emplace_back(shape(p.type.type, p.type.lens));
      detail::fill_for_timing(inputs_.back());
    }
    outputs_.resize(e.outputs().size());
  }
  void run() { exe_.run(workspace_, inputs_, outputs_); }

 private:
  const executable& exe_;
  workspace workspace_;
  std::vector<argument> inputs_, outputs_;
};

}  // namespace

void detail::executable_access::make_tuned_steps(std::unique_ptr<executable::state>& s, const target& t,
                                                 const compile_options& options) {
  const std::string machine = t.machine(s->pool->size());
  const bool near = constants_stay_near(s->optimised);
  if (machine.empty()) {
    s->report.remarks.push_back("tuning: the target " + std::string(t.name()) + " has no kernels to choose from here");
    return make_steps(*s, t, options, {.near_constants = near});
  }
  struct candidate {
    variant which;
    std::unique_ptr<executable::state> made;
    std::size_t changes, choices;
  };
  tuner& by = *options.tuning;
  const auto build = [&](variant v) {
    tuning_session session(by, machine);
    auto made = std::make_unique<executable::state>();
    made->optimised = s->optimised, made->report = s->report, made->inputs = s->inputs, made->pool = s->pool;
    made->symbols = s->symbols, made->flushes_denormals = s->flushes_denormals, made->id = s->id;
    make_steps(*made, t, options, {v == variant::estimated ? nullptr : &session, v != variant::planes, near});
    return candidate{v, std::move(made), session.changes(), session.choices()};
  };
  std::vector<std::string> remarks;
  // Of the two, the one whose run takes less time as a whole; the first where the other gains less than the margin.
  const auto shorter = [&](candidate first, candidate second, double margin) {
    executable one(std::move(first.made)), other(std::move(second.made));
    const std::string both[] = {std::string(names[static_cast<std::size_t>(first.which)]),
                                std::string(names[static_cast<std::size_t>(second.which)])};
    bool turn = false;
    try {
      trial x(one), y(other);
      const std::function<void()> runs[] = {[&] { x.run(); }, [&] { y.run(); }};
      turn = by.best_of(both, runs, margin) == 1;
    } catch (const error& e) {
      remarks.push_back(std::string("tuning: the whole can't run on made-up inputs: ") + e.what());
    }
    candidate& kept = turn ? second : first;
    kept.made = std::move((turn ? other : one).state_);
    return std::move(kept);
  };

  const std::string key = key_of(machine, *s);
  const auto found = by.cache().find(key);
  const auto known = found ? std::find(std::begin(names), std::end(names), *found) : std::end(names);
  candidate best = build(known == std::end(names) ? variant::tuned : static_cast<variant>(known - std::begin(names)));
  if (known == std::end(names) && runs_alone(*best.made, options)) {
    constexpr double any_gain = 0.005, clear_gain = 0.03;
    const bool turns = best.made->plan.turns_images;
    if (best.changes != 0) best = shorter(build(variant::estimated), std::move(best), any_gain);
    if (turns) best = shorter(std::move(best), build(variant::planes), clear_gain);
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
