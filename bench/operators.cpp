// Times the models of a list in kiln and in ONNX Runtime by turns, each in a process of its own, and prints a line for
// each; bench/operators/report.py makes tables of them.
//
//     bench_operators CASES.txt [--only TEXT] [--part K/N] [--threads 2] [--rounds 5] [--budget-ms 15] [--memory]
//
// A line of CASES.txt has fields between tabs: the case's name, the model's file (from the list's folder), the greatest
// difference that is allowed, relative to the greatest value, or "=" and the difference itself (negative: values are
// random), and for each input
// NAME|EXTENTS|LOW:HIGH, or NAME|EXTENTS|=VALUES for values that repeat. Lines printed have: name, "ok", "wrong"
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

namespace {

using namespace kiln;
using bench::clock_type;
using bench::ms_since;

struct settings {
  std::string list, only;
  int part = 0, parts = 1, rounds = 5;
  unsigned threads = 2;
  double budget_ms = 15;
  bool memory = false;
};
struct input_row {
  std::string name;
  dims lens;
  double low = 0, high = 0;
  std::vector<double> values;
};
struct case_row {
  std::string name, file;
  double tolerance = 0;
  bool relative = true;
  std::vector<input_row> inputs;
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

std::vector<case_row> read_list(const settings& s) {
  std::ifstream in(s.list);
  if (!in) throw std::runtime_error("can't read " + s.list);
  std::vector<case_row> rows;
  int number = 0;
  for (std::string line; std::getline(in, line); ++number) {
    const auto fields = split(line, '\t');
    if (fields.size() < 3) throw std::runtime_error(fmt::format("{}:{}: fewer than 3 fields", s.list, number + 1));
    if (fields[0].find(s.only) == std::string::npos || number % s.parts != s.part) continue;
    const bool relative = !fields[2].starts_with('=');
    case_row row{fields[0], fields[1], std::stod(fields[2].substr(relative ? 0 : 1)), relative, {}};
    for (std::size_t i = 3; i < fields.size(); ++i) {
      const auto parts = split(fields[i], '|');
      if (parts.size() != 3) throw std::runtime_error(fmt::format("{}:{}: {}", s.list, number + 1, fields[i]));
      input_row input{parts[0], {}, 0, 0, {}};
      for (const std::string& n : split(parts[1], ',')) input.lens.push_back(std::stoll(n));
      if (parts[2][0] == '=') {
        for (const std::string& v : split(parts[2].substr(1), ',')) input.values.push_back(std::stod(v));
      } else {
        const auto range = split(parts[2], ':');
        input.low = std::stod(range.at(0)), input.high = std::stod(range.at(1));
      }
      row.inputs.push_back(std::move(input));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

argument values_of(const input_row& row, dtype type, unsigned seed) {
  const shape s(type, row.lens);
  if (row.values.empty()) return bench::random_values(s, row.low, row.high, seed);
  argument a(s);
  for (std::int64_t i = 0; i < a.elements(); ++i)
    encode(type, &row.values[static_cast<std::size_t>(i) % row.values.size()],
           a.data() + i * static_cast<std::int64_t>(size_of(type)), 1);
  return a;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("can't read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

executable load(const settings& s, std::span<const std::byte> model) {
  compile_options options;
  options.threads = s.threads;
  const std::string folder = std::filesystem::path(s.list).parent_path().string();
  return compile(onnx::parse_model(model, folder.empty() ? "." : folder).graph, eigen_target(), options);
}

std::map<std::string, argument> inputs_of(const case_row& row, std::span<const std::byte> model) {
  std::map<std::string, argument> named;
  unsigned seed = 0;
  const auto declared = onnx::model_inputs(model);
  for (const input_row& input : row.inputs) {
    const auto at = std::find_if(declared.begin(), declared.end(), [&](const auto& v) { return v.name == input.name; });
    if (at == declared.end()) throw std::runtime_error("the model has no input " + input.name);
    named[input.name] = values_of(input, onnx::to_dtype(at->type).value(), ++seed);
  }
  return named;
}

// One line without tabs, of at most so many characters.
std::string in_short(std::string text, std::size_t most = 200) {
  for (char& c : text)
    if (c == '\n' || c == '\t') c = ' ';
  return text.substr(0, most);
}

// The sizes of symbols that a model's inputs give.
bindings sizes_of(const executable& own, const std::vector<argument>& inputs) {
  bindings sizes;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    for (std::size_t i = 0; i < inputs[k].get_shape().rank(); ++i)
      if (const dimension d = own.inputs()[k].type.lens[i]; is_symbol(d))
        sizes.bind(d, inputs[k].get_shape().lens[i].value());
  return sizes;
}

struct dropped : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class F> auto peer_call(F&& f) try { return f(); } catch (const std::exception& e) {
  throw dropped(e.what());
}

std::string measure(const std::string& library, const case_row& row, const settings& s,
                    const bench::machine_rates& most) {
  const std::string bytes = read_file(std::filesystem::path(s.list).parent_path() / row.file);
  const auto model = std::as_bytes(std::span(bytes));
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
  const std::map<std::string, argument> named = inputs_of(row, model);
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
                     bench::bound_ms(own->report(), sizes_of(*own, inputs), most) * 1e3);
}

double status_mib(const std::string& field) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(field)) return std::stod(line.substr(field.size() + 1)) / 1024;
  throw std::runtime_error("no " + field + " in /proc/self/status");
}

// MiB that this process grows by at most while it loads the model and runs it once.
std::string peak_memory(const std::string& library, const case_row& row, const settings& s, bool with_peer) {
  const std::filesystem::path path = std::filesystem::path(s.list).parent_path() / row.file;
  std::string bytes = read_file(path);
  const auto model = std::as_bytes(std::span(bytes));
  const std::map<std::string, argument> named = inputs_of(row, model);
  if (!with_peer) bytes = {};
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins here
  const double before = status_mib("VmRSS:");
  if (with_peer) {
    peer::session other(library, model, static_cast<int>(s.threads));
    other.run(named);
  } else {
    compile_options options;
    options.threads = s.threads;
    const executable own = compile(onnx::read_model(path.string()).graph, eigen_target(), options);
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
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto next = [&]() -> std::string {
      if (++i == argc) throw std::runtime_error(std::string(word) + " takes a value");
      return argv[i];
    };
    if (word == "--only")
      s.only = next();
    else if (word == "--threads")
      s.threads = static_cast<unsigned>(std::stoul(next()));
    else if (word == "--rounds")
      s.rounds = std::max(1, std::stoi(next()));
    else if (word == "--budget-ms")
      s.budget_ms = std::stod(next());
    else if (word == "--memory")
      s.memory = true;
    else if (word == "--part") {
      const auto parts = split(next(), '/');
      if (parts.size() != 2) throw std::runtime_error("--part takes K/N");
      s.part = std::stoi(parts[0]), s.parts = std::max(1, std::stoi(parts[1]));
    } else if (word.starts_with("--") || !s.list.empty())
      throw std::runtime_error("unknown option " + std::string(word));
    else
      s.list = word;
  }
  if (s.list.empty()) throw std::runtime_error("no list of cases given");
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
  const bench::machine_rates most =
      bench::rates_of(in_process([&] { return bench::to_text(bench::measure_rates(s.threads)); }));
  for (const case_row& row : read_list(s)) {
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
