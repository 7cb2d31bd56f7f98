// Times models in kiln and in ONNX Runtime by turns and prints a Markdown table: medians, the ratio ONNX Runtime /
// kiln, and its geometric mean.
//
//     bench_versus_onnxruntime [--rounds 7] [--budget-ms 200] [--tune] [--plugin LIBRARY] ([--threads 2] [--dim
//     NAME=VALUE]... MODEL.onnx)...
//
// --threads goes for all models after it and --dim for the next one, as in --threads 1 --dim batch=8 digits.onnx; a
// dim that is not told is 1. With --plugin ONNX Runtime runs the model by kiln's execution provider, so that a ratio is
// what going through it costs. With --tune kiln chooses kernels by timing them, and the load ratio says nothing.
//
// In each round both run for the budget, one after the other with a pause in which the other's workers go to sleep; a
// ratio is the median over rounds of that round's ratio. Inputs are drawn from [-1, 1), integers are 1. Exit status 1
// where outputs differ by more than 1e-3 of the greatest, 77 where ONNX Runtime is not in the build tree
// (cmake/peer.sh).
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "../test/peer/onnxruntime.hpp"
#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/tuner.hpp"
#include "versus.hpp"

namespace {

using namespace kiln;
using bench::clock_type;
using bench::ms_since;

struct model_settings {
  std::string path;
  unsigned threads = 2;
  std::vector<std::pair<std::string, std::int64_t>> dims;
};
struct settings {
  int rounds = 7;
  double budget_ms = 200;
  std::shared_ptr<tuner> tuning;
  std::string plugin;
  std::vector<model_settings> models;
};

// Floats in [-1, 1), integers 1; a dim that is not told is 1.
argument random_input(const shape& s) {
  shape sized = s;
  for (dimension& d : sized.lens) d = d.is_constant() ? d : dimension(1);
  return is_float(s.type) ? bench::random_values(sized, -1, 1) : bench::random_values(sized, 1, 2);
}

struct row {
  bench::comparison times;
  double load_ratio, apart;
};

row measure(const std::string& library, const model_settings& which, const settings& s) {
  const std::string& path = which.path;
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};  // which also has the system keep them
  const auto threads = static_cast<int>(which.threads);
  auto start = clock_type::now();
  const peer::session other = s.plugin.empty() ? peer::session(library, std::filesystem::path(path), threads)
                                               : peer::session(library, std::as_bytes(std::span(bytes)), threads,
                                                               s.plugin, {{"threads", std::to_string(which.threads)}});
  const double peer_load = ms_since(start);
  start = clock_type::now();
  compile_options options;
  options.threads = which.threads;
  options.tuning = s.tuning;
  onnx::import_options sizes;
  sizes.dimensions = which.dims;
  const executable own = compile(onnx::read_model(path, sizes).graph, eigen_target(), options);
  const double own_load = ms_since(start);

  std::map<std::string, argument> named;
  std::vector<argument> inputs;
  for (const port& p : own.inputs()) inputs.push_back(named[p.name] = random_input(p.type));
  peer::session::binding bound(other, named);
  std::vector<argument> outputs = own.run(inputs);
  workspace w = own.make_workspace();
  const bench::comparison times = bench::compare_times(
      s.rounds, s.budget_ms, [&] { own.run(w, inputs, outputs); }, [&] { bound.run(); });
  return {times, peer_load / own_load, bench::difference(outputs, bound.results())};
}

settings read_settings(int argc, char** argv) {
  settings s;
  model_settings next_model;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto next = [&]() -> std::string {
      if (++i == argc) throw std::runtime_error(std::string(word) + " takes a value");
      return argv[i];
    };
    if (word == "--threads")
      next_model.threads = static_cast<unsigned>(std::stoul(next()));
    else if (word == "--dim") {
      const std::string text = next();
      const std::size_t at = text.find('=');
      if (at == 0 || at == text.npos) throw std::runtime_error("--dim takes NAME=VALUE, found " + text);
      next_model.dims.emplace_back(text.substr(0, at), std::stoll(text.substr(at + 1)));
    } else if (word == "--tune")
      s.tuning = std::make_shared<tuner>();
    else if (word == "--plugin")
      s.plugin = next();
    else if (word == "--rounds")
      s.rounds = std::max(1, std::stoi(next()));
    else if (word == "--budget-ms")
      s.budget_ms = std::stod(next());
    else if (word.starts_with("--"))
      throw std::runtime_error("unknown option " + std::string(word));
    else
      next_model.path = word, s.models.push_back(next_model), next_model.dims.clear();
  }
  if (s.models.empty()) throw std::runtime_error("no model given");
  return s;
}

// A model's file name, or that of its folder where the file is just called model, and what is not as for the others.
std::string name_of(const model_settings& m) {
  const std::filesystem::path file(m.path), folder = file.parent_path();
  std::string name = file.stem() == "model" ? folder.filename().string() : file.stem().string();
  if (folder.filename() == "light") name = "light_" + name;
  for (const auto& [dim, value] : m.dims)
    if (value != 1) name += fmt::format(", {} {}", dim, value);
  return m.threads == model_settings().threads
             ? name
             : fmt::format("{}, {} thread{}", name, m.threads, m.threads == 1 ? "" : "s");
}

}  // namespace

int main(int argc, char** argv) try {
  const settings s = read_settings(argc, argv);
  const auto library = peer::library();
  if (!library) {
    fmt::print(stderr, "ONNX Runtime is not in build/peer: run cmake/peer.sh\n");
    return 77;
  }
  fmt::print(
      "| model | kiln ms | ONNX Runtime ms | ratio | ratio of best | load ratio | difference "
      "|\n|---|---|---|---|---|---|---|\n");
  double logs = 0, best_logs = 0, load_logs = 0;
  int rows = 0;
  bool wrong = false;
  for (const model_settings& model : s.models) {
    try {
      const row r = measure(*library, model, s);
      fmt::print("| {} | {:.4g} | {:.4g} | {:.2f} | {:.2f} | {:.2f} | {:.0e} |\n", name_of(model), r.times.own,
                 r.times.peer, r.times.ratio, r.times.best_ratio, r.load_ratio, r.apart);
      logs += std::log(r.times.ratio);
      best_logs += std::log(r.times.best_ratio);
      load_logs += std::log(r.load_ratio);
      ++rows;
      wrong = wrong || !(r.apart <= 1e-3);
    } catch (const std::exception& e) {
      fmt::print("| {} | failed: {} | | | | | |\n", name_of(model), e.what());
      wrong = true;
    }
    std::fflush(stdout);
  }
  if (rows != 0)
    fmt::print("| geometric mean of {} | | | {:.2f} | {:.2f} | {:.2f} | |\n", rows, std::exp(logs / rows),
               std::exp(best_logs / rows), std::exp(load_logs / rows));
  return wrong ? 1 : 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 2;
}
