// Runs cases in ONNX backend-test layout through ONNX Runtime with kiln's plugin:
//
//     plugin_cases FOLDER...
//
// each folder a case or a folder of cases. (ONNX Runtime overflows its stack where a command line is very long.) Prints
// the cases that differ, how many pass, and the share of the nodes that kiln ran. A case that ONNX Runtime refuses by
// itself, or whose values are no tensors of numbers, is skipped. Exit status 1 where one fails, 77 where ONNX Runtime
// is not in the build tree.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "peer/plugin.hpp"

namespace {

using namespace kiln;
namespace fs = std::filesystem;

std::string read_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

argument read_data(const fs::path& path) {
  try {
    argument a = onnx::read_tensor(path.string()).value;
    if (is_object(a.get_shape().type) || is_complex(a.get_shape().type) || bits_of(a.get_shape().type) < 8)
      throw skipped("no tensor of numbers");
    return a;
  } catch (const error& e) {
    throw skipped(e.what());
  }
}

// Why two outputs differ; nothing where they agree.
std::string difference(const argument& found, const argument& expected) {
  if (found.get_shape().type != expected.get_shape().type || found.get_shape().lens != expected.get_shape().lens)
    return fmt::format("{} in place of {}", to_string(found.get_shape()), to_string(expected.get_shape()));
  const auto x = found.to<double>(), y = expected.to<double>();
  // 16-bit floats may be two steps apart
  const dtype type = found.get_shape().type;
  const double step = type == dtype::bf16 ? 1.0 / 64 : 1e-3;
  double greatest = 0;
  for (const double v : y)
    if (std::isfinite(v)) greatest = std::max(greatest, std::fabs(v));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])) ||
                      std::fabs(x[i] - y[i]) <= 1e-7 + 5e-7 * greatest + step * std::fabs(y[i]);
    if (!same) return fmt::format("element {}: {} in place of {}", i, x[i], y[i]);
  }
  return {};
}

std::vector<fs::path> cases_in(const fs::path& folder) {
  if (fs::exists(folder / "model.onnx")) return {folder};
  std::vector<fs::path> out;
  for (const fs::directory_entry& e : fs::directory_iterator(folder))
    if (fs::exists(e.path() / "model.onnx")) out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

// Whether a case has an operator that draws, or data in another type than its model (ONNX 1.12 writes bf16 as u16).
bool has_no_answer(const std::string& name) {
  return name.find("bernoulli") != std::string::npos ||
         (name.find("cast") != std::string::npos && name.find("BFLOAT16") != std::string::npos);
}

struct tally {
  std::size_t passed = 0, failed = 0, skipped = 0, nodes = 0, claimed = 0;
};

void run_case(const peer::plugin_host& host, const fs::path& folder, tally& t) {
  if (has_no_answer(folder.filename().string())) throw skipped("no one answer");
  const std::string bytes = read_bytes(folder / "model.onnx");
  const auto model = std::as_bytes(std::span(bytes));
  std::unique_ptr<peer::plugin_session> session;
  try {
    session = std::make_unique<peer::plugin_session>(host, model);
  } catch (const error& e) {
    try {
      peer::session alone(*peer::library(), model);
    } catch (const std::exception&) {
      throw skipped("ONNX Runtime refuses it");
    }
    throw;
  }
  t.claimed += session->assigned(host.name).first;
  t.nodes += session->assigned(host.name).first + session->assigned("CPUExecutionProvider").first;
  for (int set = 0; fs::exists(folder / fmt::format("test_data_set_{}", set)); ++set) {
    const fs::path data = folder / fmt::format("test_data_set_{}", set);
    std::map<std::string, argument> given;
    for (std::size_t i = 0; i < session->inputs.size(); ++i)
      given[session->inputs[i]] = read_data(data / fmt::format("input_{}.pb", i));
    std::vector<argument> expected;
    for (std::size_t i = 0; i < session->outputs.size(); ++i)
      expected.push_back(read_data(data / fmt::format("output_{}.pb", i)));
    const std::vector<argument> found = session->run(given);
    for (std::size_t i = 0; i < found.size(); ++i)
      if (const std::string why = difference(found[i], expected[i]); !why.empty())
        throw std::runtime_error(fmt::format("output {}: {}", i, why));
  }
}

}  // namespace

int main(int count, char** folders) {
  if (!peer::library()) return fmt::print(stderr, "SKIPPED: ONNX Runtime is not in build/peer\n"), 77;
  const peer::plugin_host host;
  tally t;
  for (int i = 1; i < count; ++i)
    for (const fs::path& folder : cases_in(folders[i])) {
      try {
        run_case(host, folder, t);
        ++t.passed;
      } catch (const skipped&) {
        ++t.skipped;
      } catch (const std::exception& e) {
        ++t.failed;
        fmt::print("{}: {}\n", folder.filename().string(), e.what());
      }
    }
  fmt::print("{} passed, {} failed, {} skipped; kiln ran {} of {} nodes\n", t.passed, t.failed, t.skipped, t.claimed,
             t.nodes);
  return t.failed != 0;
}
