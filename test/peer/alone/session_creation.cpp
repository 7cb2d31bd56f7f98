// Times how long ONNX Runtime takes to make a session of a model, with its own CPU provider and with kiln's plugin
// whose model cache has the model, and prints a Markdown table: medians, and the ratio plugin / own provider.
//
//     session_creation [--rounds N] [--at-most RATIO] MODEL.onnx...
//
// With --at-most the exit status is 1 where the least times of a model have a greater ratio after five times as many
// rounds: a busy machine spoils some of them. What the plugin says
// goes to standard error. Exit status 77 where ONNX Runtime is not in the build tree (cmake/peer.sh).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "peer/plugin.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace kiln;
namespace fs = std::filesystem;

double median(std::vector<double> of) {
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

template <class Make> double time_ms(Make&& make) {
  const auto from = std::chrono::steady_clock::now();
  const auto made = make();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
}

void print_line(void*, peer::ort::severity, const char*, const char*, const char*, const char* message) {
  if (std::string_view(message).starts_with("kiln: ")) fmt::print(stderr, "{}\n", message);
}

}  // namespace

int main(int count, char** words) {
  if (!peer::library()) return fmt::print(stderr, "SKIPPED: ONNX Runtime is not in build/peer\n"), 77;
  const peer::plugin_host host(print_line);
  const test::temporary_folder folder;
  const fs::path cache = folder / "cache";
  int rounds = 5, first = 1;
  double most = INFINITY;
  bool is_slow = false;
  for (; first + 1 < count && std::string_view(words[first]).starts_with("--"); first += 2)
    if (std::string_view(words[first]) == "--rounds")
      rounds = std::stoi(words[first + 1]);
    else
      most = std::stod(words[first + 1]);
  fmt::print(
      "| model | own provider, ms | plugin, cold, ms | plugin, warm, ms | warm / own |\n|---|---|---|---|---|\n");
  for (int i = first; i < count; ++i) {
    const fs::path model = words[i];
    fs::remove_all(cache);
    const auto with_plugin = [&] {
      return std::make_unique<peer::plugin_session>(host, model, peer::text_pairs{{"cache_dir", cache.string()}});
    };
    const auto alone = [&] { return std::make_unique<peer::plugin_session>(host, model, peer::without_plugin); };
    const double cold = time_ms(with_plugin);
    std::vector<double> own, warm, ratio;
    const auto is_over = [&] {
      return *std::min_element(warm.begin(), warm.end()) > most * *std::min_element(own.begin(), own.end());
    };
    for (int r = 0; r < rounds || (r < 5 * rounds && is_over()); ++r) {
      own.push_back(time_ms(alone));
      warm.push_back(time_ms(with_plugin));
      ratio.push_back(warm.back() / own.back());
    }
    fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.2f} |\n", model.stem().string(), median(own), cold, median(warm),
               median(ratio));
    is_slow = is_slow || is_over();
  }
  return is_slow;
}
