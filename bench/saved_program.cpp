// Times the load of saved programs beside compilation and beside creating ONNX Runtime's sessions, and prints a
// Markdown table of medians: in each round a model is read and compiled, the program that was saved of it is loaded,
// and a session is created, one after the other, from files that are in memory.
//
//     bench_saved_program [--rounds 9] MODEL.onnx...
//
// Then how long a save takes, and what of it is waiting for the disk. Exit status 77 where ONNX Runtime is not in the
// build tree (cmake/peer.sh).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "../test/peer/onnxruntime.hpp"
#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/kept_files.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "kiln/runtime/thread_pool.hpp"

namespace {

using namespace kiln;

template <class Work> double ms_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void measure(const std::string& library, const std::filesystem::path& model, int rounds) {
  const auto file = std::filesystem::temp_directory_path() / ("bench_saved_program." + std::to_string(::getpid()));
  constexpr unsigned threads = 2;
  compile_options options;
  options.pool = std::make_shared<thread_pool>(threads);
  const eigen_target target;
  const std::string bytes = read_file(model);
  std::vector<double> compiled, loaded, created, saved, written;
  for (int round = 0; round < rounds; ++round) {
    {
      std::optional<executable> exe;
      compiled.push_back(ms_of([&] { exe.emplace(compile(onnx::read_model(model.string()).graph, target, options)); }));
      saved.push_back(ms_of([&] { save(*exe, file); }));
    }
    for (int i = 0; i < 20; ++i) loaded.push_back(ms_of([&] { load(file, target, options); }));
    created.push_back(ms_of([&] { const peer::session s(library, std::as_bytes(std::span(bytes)), threads); }));
    const std::string whole = read_file(file);
    written.push_back(ms_of([&] { keep_file(file, whole); }));
  }
  std::filesystem::remove(file);
  const double load_ms = median(loaded);
  fmt::print("| {} | {:.3g} | {:.3g} | {:.3g} | {:.3f} | {:.4f} | {:.3g} | {:.3g} |\n", model.stem().string(),
             median(compiled), load_ms, median(created), load_ms / median(compiled), load_ms / median(created),
             median(saved), median(written));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  const auto library = peer::library();
  if (!library) {
    fmt::print(stderr, "ONNX Runtime is not in build/peer: run cmake/peer.sh\n");
    return 77;
  }
  int rounds = 9, first = 1;
  if (argc > 2 && std::string_view(argv[1]) == "--rounds") rounds = std::stoi(argv[2]), first = 3;
  fmt::print(
      "| model | read and compile, ms | load, ms | session, ms | load / compile | load / session | save, ms | the same "
      "bytes written without fsync, ms |\n|---|---|---|---|---|---|---|---|\n");
  for (int i = first; i < argc; ++i) measure(*library, argv[i], rounds);
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 2;
}
