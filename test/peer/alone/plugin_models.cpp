// Runs whole models through ONNX Runtime with kiln's plugin, with nothing left to ONNX Runtime:
//
//     plugin_models [--tolerance MODEL=TOLERANCE]... [--dim NAME=VALUE]... FILE|FOLDER...
//
// Outputs are compared with those of the same model in kiln itself: max|x-y| <= TOLERANCE * max|y|, 1e-4 where nothing
// is said of the model's file name. Floats are drawn from [-1, 1), integers are 1, extents that are open 2. Prints the
// share of nodes that kiln claimed. Exit status 1 where a model differs, is refused, or the share is below 99 %; 77
// where ONNX Runtime is not in the build tree.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "kiln/backend/eigen/eigen_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/runtime/executable.hpp"
#include "peer/plugin.hpp"

namespace {

using namespace kiln;
namespace fs = std::filesystem;

struct settings {
  std::map<std::string, double> tolerances;
  std::map<std::string, std::int64_t> extents;  // of open dims
  std::vector<fs::path> files;
};

template <class Value> void add(std::map<std::string, Value>& to, const std::string& word) {
  const std::size_t at = word.find('=');
  if (at == std::string::npos) throw std::runtime_error("expected NAME=VALUE, found " + word);
  to[word.substr(0, at)] = static_cast<Value>(std::stod(word.substr(at + 1)));
}

settings read_words(int count, char** words) {
  settings out;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--tolerance" && i + 1 < count)
      add(out.tolerances, words[++i]);
    else if (word == "--dim" && i + 1 < count)
      add(out.extents, words[++i]);
    else if (!fs::is_directory(word))
      out.files.emplace_back(word);
    else
      for (const fs::directory_entry& e : fs::recursive_directory_iterator(word))
        if (e.path().extension() == ".onnx") out.files.push_back(e.path());
  }
  std::sort(out.files.begin(), out.files.end());
  return out;
}

argument drawn(const shape& type, const std::map<std::string, std::int64_t>& extents) {
  shape s{type.type, {}};
  for (const dimension& d : type.lens) {
    const auto told = extents.find(to_string(d));
    s.lens.push_back(d.is_constant() ? d.value() : told == extents.end() ? 2 : told->second);
  }
  std::mt19937 from(7);
  std::uniform_real_distribution<float> values(-1, 1);
  argument out(s);
  std::vector<float> all(static_cast<std::size_t>(out.elements()), 1);
  if (is_float(s.type))
    for (float& v : all) v = values(from);
  encode(s.type, all.data(), out.data(), out.elements());
  return out;
}

double apart(const argument& found, const argument& expected) {
  if (found.get_shape().lens != expected.get_shape().lens) throw std::runtime_error("another shape");
  const auto x = found.to<double>(), y = expected.to<double>();
  double greatest = 1e-30, most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i]) != std::isfinite(y[i])) throw std::runtime_error("a number that is not finite");
    if (!std::isfinite(y[i])) continue;
    greatest = std::max(greatest, std::fabs(y[i]));
    most = std::max(most, std::fabs(x[i] - y[i]));
  }
  return most / greatest;
}

// Why a node is left.
void print_reason(void*, peer::ort::severity, const char*, const char*, const char*, const char* message) {
  if (std::string_view(message).starts_with("kiln: leaves")) fmt::print("{}\n", message);
}

}  // namespace

int main(int count, char** words) {
  if (!peer::library()) return fmt::print(stderr, "SKIPPED: ONNX Runtime is not in build/peer\n"), 77;
  const settings how = read_words(count, words);
  const peer::plugin_host host(print_reason);
  std::size_t nodes = 0, claimed = 0, failed = 0;
  for (const fs::path& file : how.files) {
    try {
      const executable own = compile(onnx::read_model(file.string()).graph, eigen_target());
      std::map<std::string, argument> given;
      for (const port& p : own.inputs()) given[p.name] = drawn(p.type, how.extents);
      {
        const peer::plugin_session any(host, file);
        claimed += any.assigned(host.name).first;
        nodes += any.assigned(host.name).first + any.assigned("CPUExecutionProvider").first;
      }
      const peer::plugin_session session(host, file, {}, {{"session.disable_cpu_ep_fallback", "1"}});
      const std::vector<argument> found = session.run(given), expected = own.run(given);
      double most = 0;
      for (std::size_t k = 0; k < found.size(); ++k) most = std::max(most, apart(found[k], expected[k]));
      fmt::print("{}: {:.1e}\n", file.filename().string(), most);
      const auto told = how.tolerances.find(file.stem().string());
      if (!(most <= (told == how.tolerances.end() ? 1e-4 : told->second))) ++failed;
    } catch (const std::exception& e) {
      ++failed;
      fmt::print("{}: {}\n", file.filename().string(), e.what());
    }
  }
  fmt::print("kiln ran {} of {} nodes of {} models, {} of which failed\n", claimed, nodes, how.files.size(), failed);
  return failed != 0 || how.files.empty() || claimed * 100 < nodes * 99;
}
