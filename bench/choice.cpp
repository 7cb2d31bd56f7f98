// Checks the cost model against measurement: times every candidate for each problem of the models of a list, alone as
// tuning does, and prints the problems where another candidate is faster than the one that the estimate chooses.
//
//     bench_choice CASES.txt [--only TEXT] [--part K/N] [--threads 2] [--over 1.1]
//
// operator_cases.hpp says what CASES.txt holds. A problem is an instruction of constant sizes, or a whole program (its
// plan as estimated, tuned, without NHWC); each is timed once, however many models hold it. A line printed has: the
// estimated choice's time over the best candidate's, where that is at least --over, the two candidates, the times of
// all over the estimated one's, the case in which the problem was met, and the problem. The last lines sum up by the
// kind of problem.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/tuner.hpp"
#include "operator_cases.hpp"

namespace {

using namespace kiln;

struct settings : bench::case_selection {
  double over = 1.1;
};

struct problem {
  double loss;  // of the estimate's choice: its time over the best one's
  std::string estimated, best, all, met_in, what;
};

// What a problem's key says after the machine: see tuner.ipp.
std::string without_machine(std::string_view key) {
  const auto at = key.find(": ");
  return std::string(at == key.npos ? key : key.substr(at + 2));
}

settings read_settings(int argc, char** argv) {
  settings s;
  s.list = bench::read_options(argc, argv, [&](const std::string& word, const auto& next) {
    if (word != "--over") return s.take(word, next);
    s.over = std::stod(next());
    return true;
  });
  return s;
}

std::vector<problem> problems_of(const settings& s) {
  std::vector<problem> found;
  std::string now;
  tuning_options options;
  options.file.clear();
  options.measured = [&](std::string_view key, std::span<const std::string> names, const tuning_result& r) {
    const auto best = std::min_element(r.ratios.begin(), r.ratios.end());
    std::string all;
    for (std::size_t k = 0; k < names.size(); ++k)
      all += fmt::format("{}{} {:.2f}", k ? ", " : "", names[k], r.ratios[k]);
    found.push_back({1 / *best, names[0], names[static_cast<std::size_t>(best - r.ratios.begin())], all, now,
                     bench::in_short(without_machine(key), 1000)});
  };
  compile_options compile_with;
  compile_with.threads = s.threads;
  compile_with.tuning = std::make_shared<tuner>(std::move(options));
  for (const bench::case_row& row : bench::read_cases(s)) {
    now = row.name;
    try {
      const auto path = std::filesystem::path(s.list).parent_path() / row.file;
      compile(onnx::read_model(path.string()).graph, eigen_target(), compile_with);
    } catch (const std::exception& e) {
      fmt::print(stderr, "{}: {}\n", now, bench::in_short(e.what()));
    }
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) try {
  const settings s = read_settings(argc, argv);
  std::vector<problem> found = problems_of(s);
  std::stable_sort(found.begin(), found.end(), [](const problem& a, const problem& b) { return a.loss > b.loss; });
  struct sum {
    int problems = 0, over = 0;
    double logs = 0;
  };
  std::map<std::string, sum> kinds;
  for (const problem& p : found) {
    const bool whole = p.estimated.starts_with("program ");
    for (const std::string& kind :
         {std::string("all"), whole ? "program" : p.what.substr(0, p.what.find_first_of(" {("))}) {
      sum& k = kinds[kind];
      ++k.problems, k.over += p.loss >= s.over, k.logs += std::log(p.loss);
    }
    if (p.loss >= s.over)
      fmt::print("{:.2f}\t{}\t{}\t{}\t{}\t{}\n", p.loss, p.estimated, p.best, p.all, p.met_in, p.what);
  }
  for (const auto& [kind, k] : kinds)
    fmt::print("{}: {} problems, the estimate at least {} times the best in {}, {:.3f} times in the mean\n", kind,
               k.problems, s.over, k.over, std::exp(k.logs / k.problems));
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 2;
}
