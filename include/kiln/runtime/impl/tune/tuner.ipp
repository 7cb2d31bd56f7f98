#include "kiln/runtime/tuner.hpp"

#include <algorithm>
#include <chrono>

#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/impl/tune/tuning_data.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

std::string problem_of(const kernel_request& r) {
  std::string all;
  if (r.instruction.op.is<op::fused>()) {
    all = detail::computation_of(r.whole, r.whole.module(r.instruction.op.body()));
  } else {
    text attributes;
    r.instruction.op.print(attributes);
    all = std::string(r.instruction.op.name()) + attributes.str();
  }
  const auto add = [&](const shape& s, bool nhwc) { all += " " + to_string(s) + (nhwc ? " NHWC" : ""); };
  for (std::size_t k = 0; k < r.inputs.size(); ++k) {
    add(r.inputs[k], r.nhwc[k]);
    if (r.constants[k]) all += " constant";
  }
  all += " ->";
  for (const shape& s : r.instruction.results) add(s, r.result_nhwc);
  if (r.near_constants) all += " near";
  return all;
}

bool sized(const kernel_request& r) {
  const auto fixed = [](const shape& s) { return s.is_constant() && !is_object(s.type); };
  return std::all_of(r.inputs.begin(), r.inputs.end(), fixed) &&
         std::all_of(r.instruction.results.begin(), r.instruction.results.end(), fixed);
}

}  // namespace

tuning_options tuning_options_of(const compile_options& options) {
  tuning_options out;
  if (!options.tuning_file.empty()) out.file = options.tuning_file;
  return out;
}

tuner::tuner(tuning_options options) : options_(std::move(options)), cache_(options_.file) {}

double tuner::seconds_of(const std::string& name, const std::function<void()>& run) const {
  if (options_.seconds) return options_.seconds(name, run);
  const auto start = clock::now();
  run();
  return std::chrono::duration<double>(clock::now() - start).count();
}

tuning_result tuner::best_of(std::span<const std::string> names, std::span<const std::function<void()>> runs,
                             double margin, const std::function<void()>& before) const {
  constexpr std::size_t first_rounds = 3, least_rounds = 7, most_rounds = 25;
  constexpr double hopeless = 1.25, most_seconds = 0.4;
  if (names.size() < 2) return {0, std::vector<double>(names.size(), 1.0)};
  const std::lock_guard alone(measuring_);
  std::vector<std::vector<double>> ratios(names.size());
  std::vector<bool> out(names.size(), false);
  const auto time = [&](std::size_t k) {
    if (before && !options_.seconds) before();
    return seconds_of(names[k], runs[k]);
  };
  for (std::size_t k = 0; k < names.size(); ++k) time(k);  // first touches of code and memory
  double spent = 0;
  for (std::size_t round = 0; round < most_rounds && (round < least_rounds || spent < most_seconds); ++round) {
    // a change of the machine's speed within a round would favor those after it: the order alternates
    const bool forward = round % 2 == 0;
    std::vector<double> now(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::size_t k = forward ? i : names.size() - 1 - i;
      if (!out[k]) spent += now[k] = time(k);
    }
    for (std::size_t k = 1; k < names.size(); ++k) {
      if (out[k]) continue;
      ratios[k].push_back(now[0] > 0 ? now[k] / now[0] : 1);
      out[k] = round + 1 == first_rounds && median(ratios[k]) > hopeless;
    }
  }
  tuning_result found{0, {1.0}};
  double least = 1 - margin;
  for (std::size_t k = 1; k < names.size(); ++k) {
    const auto wins = std::count_if(ratios[k].begin(), ratios[k].end(), [](double r) { return r < 1; });
    const double middle = found.ratios.emplace_back(median(ratios[k]));
    if (!out[k] && 4 * static_cast<std::size_t>(wins) >= 3 * ratios[k].size() && middle < least)
      least = middle, found.best = k;
  }
  return found;
}

tuning_session::tuning_session(tuner& by, std::string machine) : tuner_(by), machine_(std::move(machine)) {}

void tuning_session::next(std::size_t done, std::size_t all, std::string_view what) const {
  if (tuner_.options().progress) tuner_.options().progress({done, all, what});
}

std::unique_ptr<kernel> tuning_session::choose(const kernel_request& r, const kernel_candidates& candidates) {
  if (candidates.names.size() < 2 || !sized(r)) return candidates.make(0);
  ++choices_;
  const std::string key = machine_ + ": " + problem_of(r);
  const auto& names = candidates.names;
  if (const auto kept = tuner_.cache().find(key)) {
    const auto at = std::find(names.begin(), names.end(), *kept);
    if (at != names.end()) {
      changes_ += at != names.begin();
      return candidates.make(static_cast<std::size_t>(at - names.begin()));
    }
  }
  std::vector<std::unique_ptr<kernel>> made;
  const tuning_result found = measure(r, candidates, made);
  const std::size_t best = found.best;
  if (tuner_.options().measured) tuner_.options().measured(key, names, found);
  tuner_.cache().keep(key, names[best]);
  changes_ += best != 0;
  return std::move(made[best]);
}

tuning_result tuning_session::measure(const kernel_request& r, const kernel_candidates& candidates,
                                      std::vector<std::unique_ptr<kernel>>& made) {
  constexpr double margin = 0.04;  // of the time: less than that is as likely to be the neighbors' doing
  detail::tuning_data data(r);
  std::vector<std::function<void()>> runs;
  // of what the candidates derive, only the chosen one's is kept
  std::vector<derived_data> derived(candidates.names.size());
  derived_data before_all;
  if (r.derived) before_all = std::exchange(*r.derived, {});
  for (std::size_t k = 0; k < candidates.names.size(); ++k) {
    made.push_back(candidates.make(k));
    if (r.derived) derived[k] = std::exchange(*r.derived, {});
  }
  for (const auto& one : made) runs.push_back(data.launch_of(*one));
  // constants that stay near are where the run before has left them
  const std::function<void()> before = r.near_constants ? std::function<void()>() : [&] { data.cool(); };
  tuning_result found = tuner_.best_of(candidates.names, runs, margin, before);
  if (r.derived) {
    *r.derived = std::move(before_all);
    r.derived->append(std::move(derived[found.best]));
  }
  return found;
}

std::unique_ptr<kernel> make_best(const kernel_request& r, const kernel_candidates& candidates) {
  return r.tuning ? r.tuning->choose(r, candidates) : candidates.make(0);
}

}  // namespace kiln
