// Times the models of a list in kiln and in ONNX Runtime by turns, each in a process of its own, and prints a line for
// each; bench/operators/report.py makes tables of them.
//
//     bench_operators CASES.txt [--only TEXT] [--part K/N] [--threads 2] [--rounds 5] [--budget-ms 15] [--memory]
//
// operator_cases.hpp says what CASES.txt holds. Lines printed have: name, "ok", "wrong"
// (values differ), "failed" (kiln) or "dropped" (ONNX Runtime can't run it); then kiln's us, ONNX Runtime's us, their
// ratio by rounds, ratio of the shortest runs, that of loading, kiln's load ms, the difference, kernels that are the
// op's reference computation, all kernels, and the us of bench/bounds.hpp's bound; with --memory, the MiB that a
// process which loads the model and runs it once grew by at most: kiln's and ONNX Runtime's; or the reason in words.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "../test/peer/onnxruntime.hpp"
#include "bounds.hpp"
#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "operator_cases.hpp"

namespace {

using namespace kiln;
using bench::case_row;
using bench::clock_type;
using bench::in_short;
using bench::inputs_of;
using bench::load;
using bench::ms_since;
using bench::read_file;

struct settings : bench::case_selection {
  int rounds = 5;
  double budget_ms = 15;
  bool memory = false;
};

struct dropped : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class F> auto peer_call(F&& f) try { return f(); } catch (const std::exception& e) {
  throw dropped(e.what());
}

std::string measure(const std::string& library, const case_row& row, const settings& s,
                    const bench::machine_rates& most) {
  const std::filesystem::path model = std::filesystem::path(s.list).parent_path() / row.file;
  const std::map<std::string, argument> named = [&] {
    const std::string bytes = read_file(model);  // which also has the system keep them
    return inputs_of(row, std::as_bytes(std::span(bytes)));
  }();
  // The better of two: the first touches memory that the system has yet to find.
  const auto threads = static_cast<int>(s.threads);
  std::unique_ptr<peer::session> other;
  std::optional<executable> own;
  double peer_load = INFINITY, own_load = INFINITY;
  for (int round = 0; round < 2; ++round) {
    other.reset();
    auto start = clock_type::now();
    other = peer_call([&] { return std::make_unique<peer::session>(library, model, threads); });
    peer_load = std::min(peer_load, ms_since(start));
    own.reset();
    start = clock_type::now();
    own.emplace(load(s, model));
    own_load = std::min(own_load, ms_since(start));
  }
  std::vector<argument> inputs;
  for (const port& p : own->inputs()) inputs.push_back(named.at(p.name));
  peer::session::binding bound(*other, named);
  peer_call([&] { bound.run(); });
  std::vector<argument> outputs = own->run(inputs);
  const double apart = row.tolerance < 0 ? 0 : bench::difference(outputs, bound.results(), row.relative);
  workspace w = own->make_workspace();
  const auto times = bench::compare_times(
      s.rounds, s.budget_ms, [&] { own->run(w, inputs, outputs); }, [&] { bound.run(); });
  std::vector<std::string> kernels;
  std::set<std::string> references;
  for (const step_info& step : own->report().steps) {
    kernels.push_back(step.kernel);
    if (step.fallback) references.insert(step.kernel);
  }
  return fmt::format("{}\t{:.4g}\t{:.4g}\t{:.3f}\t{:.3f}\t{:.3f}\t{:.3g}\t{:.1e}\t{}\t{}\t{:.4g}",
                     row.tolerance < 0 || apart <= row.tolerance ? "ok" : "wrong", times.own * 1e3, times.peer * 1e3,
                     times.ratio, times.best_ratio, peer_load / own_load, own_load, apart, fmt::join(references, ","),
                     in_short(fmt::format("{}", fmt::join(kernels, ","))),
                     bench::bound_ms(own->report(), bench::sizes_of(*own, inputs), most) * 1e3);
}

double status_mib(const std::string& field) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(field)) return std::stod(line.substr(field.size() + 1)) / 1024;
  throw std::runtime_error("no " + field + " in /proc/self/status");
}

// MiB that this process grows by at most while it loads the model and runs it once.
std::string peak_memory(const std::string& library, const case_row& row, const settings& s, bool with_peer) {
  const std::filesystem::path model = std::filesystem::path(s.list).parent_path() / row.file;
  const std::map<std::string, argument> named = [&] {
    const std::string bytes = read_file(model);
    return inputs_of(row, std::as_bytes(std::span(bytes)));
  }();
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins here
  const double before = status_mib("VmRSS:");
  if (with_peer) {
    peer::session other(library, model, static_cast<int>(s.threads));
    other.run(named);
  } else {
    const executable own = load(s, model);
    own.run(named);
  }
  return fmt::format("{:.1f}", status_mib("VmHWM:") - before);
}

// What `work` gives, of a process of its own, which a signal or five minutes end.
std::string in_process(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
    std::string text;
    try {
      text = work();
    } catch (const dropped& e) {
      text = "dropped\t" + in_short(e.what());
    } catch (const std::exception& e) {
      text = "failed\t" + in_short(e.what());
    }
    [[maybe_unused]] const auto written = write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  std::string text(1 << 16, '\0');
  std::size_t size = 0;
  for (ssize_t n; (n = read(ends[0], text.data() + size, text.size() - size)) > 0;) size += static_cast<std::size_t>(n);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return fmt::format("failed\tended by signal {}", WTERMSIG(status));
  return text.substr(0, size);
}

settings read_settings(int argc, char** argv) {
  settings s;
  s.list = bench::read_options(argc, argv, [&](const std::string& word, const auto& next) {
    if (word == "--rounds")
      s.rounds = std::max(1, std::stoi(next()));
    else if (word == "--budget-ms")
      s.budget_ms = std::stod(next());
    else if (word == "--memory")
      s.memory = true;
    else
      return s.take(word, next);
    return true;
  });
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const settings s = read_settings(argc, argv);
  const auto library = peer::library();
  if (!library) {
    fmt::print(stderr, "ONNX Runtime is not in build/peer: run cmake/peer.sh\n");
    return 77;
  }
  const eigen_target shared;  // loads what all processes share
  const std::string rates = in_process([&] { return bench::to_text(bench::measure_rates(s.threads)); });
  if (rates.starts_with("failed") || rates.empty()) throw std::runtime_error("the machine's rates: " + rates);
  const bench::machine_rates most = bench::rates_of(rates);
  for (const case_row& row : bench::read_cases(s)) {
    std::string line = in_process([&] { return measure(*library, row, s, most); });
    if (s.memory && !line.starts_with("dropped") && !line.starts_with("failed"))
      for (const bool with_peer : {false, true})
        line += "\t" + in_process([&] { return peak_memory(*library, row, s, with_peer); });
    fmt::print("{}\t{}\n", row.name, line);
    std::fflush(stdout);
  }
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 2;
}
