#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "cases.hpp"
#include "compare.hpp"
#include "files.hpp"
#include "isolate.hpp"
#include "json.hpp"
#include "kiln/interface/named_target.hpp"
#include "kiln/onnx/import.hpp"
#include "kiln/onnx/tensor.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "statistics.hpp"

namespace kiln::driver {

namespace {

// A file's value as the model declares it. The test data of ONNX 1.12 and before have bfloat16 as uint16.
argument read_as(const std::filesystem::path& file, dtype holder, std::optional<dtype> declared) {
  argument a = onnx::read_value(file.string(), holder).value;
  if (declared != dtype::bf16 || a.get_shape().type != dtype::u16) return a;
  return argument(literal({dtype::bf16, a.get_shape().lens}, a.to_literal().data()));
}

// A set's inputs by position, which is what the layout defines; the names in the files say nothing.
named_arguments read_set(const data_set& set, const std::vector<onnx::value_info>& inputs) {
  if (set.inputs.size() != inputs.size()) {
    std::string names;
    for (const onnx::value_info& i : inputs) names += (names.empty() ? "" : ", ") + i.name;
    raise(errc::invalid_argument, fmt::format("{} input files, but the model takes {}: {}", set.inputs.size(),
                                              inputs.size(), names.empty() ? "none" : names));
  }
  named_arguments out;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    out.emplace(inputs[k].name, read_as(set.inputs[k], container_of(inputs[k]), onnx::to_dtype(inputs[k].type)));
  return out;
}

void save(const std::filesystem::path& folder, const std::vector<argument>& outputs, std::span<const port> ports) {
  make_folder(folder);
  file_group files;
  for (std::size_t k = 0; k < outputs.size(); ++k)
    files.add(folder / fmt::format("output_{}.pb", k),
              [&](const std::string& name) { onnx::write_tensor(name, outputs[k], ports[k].name); });
  files.commit();
}

// Steps that a case ran, and those of them by a fallback, by kernel: a line of text between processes.
struct step_count {
  std::size_t steps = 0;
  std::map<std::string, std::size_t> fallbacks;
  void add(const compile_report& r) {
    for (const step_info& s : r.steps) {
      ++steps;
      if (s.fallback) ++fallbacks[s.kernel];
    }
  }
  void add(const step_count& other) {
    steps += other.steps;
    for (const auto& [name, n] : other.fallbacks) fallbacks[name] += n;
  }
  std::string line() const {
    std::string out = fmt::format("{}", steps);
    for (const auto& [name, n] : fallbacks) out += fmt::format("\t{}\t{}", name, n);
    return out + "\n";
  }
  // Takes such a line off the beginning of a text.
  static step_count take(std::string& from) {
    const std::size_t end = std::min(from.find('\n'), from.size());
    std::istringstream in(from.substr(0, end));
    from.erase(0, std::min(end + 1, from.size()));
    step_count out;
    in >> out.steps;
    in.get();
    std::string name, n;
    while (std::getline(in, name, '\t') && std::getline(in, n, '\t')) out.fallbacks[name] = std::stoul(n);
    return out;
  }
};

// Runs one case; the result is a step_count's line, then one line for each thing that is wrong.
std::string check(const test_case& c, const test_command& command) {
  hide_progress();
  model_options o = command;
  o.model = c.model().string();
  const compiler make = compile_for_target(o);
  std::string wrong;
  step_count count;
  std::optional<compiled_model> model;
  const std::vector<onnx::value_info> inputs = onnx::model_inputs(o.model);
  for (const data_set& set : c.sets) {
    const named_arguments given = read_set(set, inputs);
    if (!model || model->built_for_values) {
      model.reset();
      model.emplace(load_model(o, given, make));
      count.add(model->exe.report());
    }
    const std::span<const port> ports = model->exe.outputs();
    std::vector<argument> outputs;
    try {
      outputs = run_once(model->exe, prepare_inputs(model->exe.inputs(), given, o).arguments, o);
    } catch (const error& e) {
      if (e.code() != errc::shape_mismatch) throw;
      const ready_model sized = load_ready(o, given, make);
      outputs = run_once(sized.model.exe, sized.in.arguments, o);
    }
    if (!command.save.empty()) save(std::filesystem::path(command.save) / c.name / set.name, outputs, ports);
    if (set.outputs.size() != outputs.size())
      wrong += fmt::format("{}: {} expected outputs, but the model gives {}\n", set.name, set.outputs.size(),
                           outputs.size());
    for (std::size_t k = 0; k < std::min(outputs.size(), set.outputs.size()); ++k) {
      // an output of unknown rank is the tensor that the run gave
      const dtype type = ports[k].type.type == dtype::optional ? outputs[k].get_shape().type : ports[k].type.type;
      const argument expected = read_as(set.outputs[k], type, type);
      if (const difference d = compare(outputs[k], expected, command.allowed))
        wrong += fmt::format("{}: output {} '{}': {}\n", set.name, k, ports[k].name, d.reason);
    }
  }
  return count.line() + wrong;
}

struct outcome {
  std::string status, reason;
  double seconds = 0;
  step_count count;
};

outcome run_case(const test_case& c, const test_command& command, const std::function<void()>& waiting) {
  if (c.sets.empty()) return {"skipped", "no test_data_set_*", 0, {}};
  const stopwatch clock;
  isolated done = isolate([&] { return check(c, command); }, command.timeout_seconds, waiting);
  step_count count = step_count::take(done.report);
  std::string reason = done.failure.empty() ? done.report : done.failure;
  while (reason.ends_with('\n')) reason.pop_back();
  return {reason.empty() ? "passed" : "failed", std::move(reason), clock.ms() / 1e3, std::move(count)};
}

std::string indented(std::string text) {
  for (std::size_t i = 0; (i = text.find('\n', i)) != text.npos; i += 3) text.insert(i + 1, "  ");
  return "  " + text;
}

}  // namespace

int test(const test_command& c) {
  // a wrong name is one error, not one for each case; a GPU's runtime does not survive the fork of a case
  if (!c.target.starts_with("hip")) (void)named_target(c.target);
  const std::vector<test_case> cases = find_cases(c.folders);
  if (!c.save.empty()) {
    make_folder(c.save);
    std::set<std::string> names;
    for (const test_case& one : cases)
      if (!names.insert(one.name).second)
        raise(errc::invalid_argument, fmt::format("--save: two folders are called {}", one.name));
  }

  std::size_t passed = 0, failed = 0, skipped = 0;
  step_count count;
  json listed = json::array();
  progress_line line;
  for (const test_case& one : cases) {
    const outcome o = run_case(
        one, c, [&] { line.show(fmt::format("[{}/{}] {}", passed + failed + skipped + 1, cases.size(), one.name)); });
    line.clear();
    count.add(o.count);
    (o.status == "passed" ? passed : o.status == "failed" ? failed : skipped) += 1;
    if (c.json) {
      json entry = {{"name", one.name}, {"folder", one.folder.string()}, {"status", o.status}};
      if (!o.reason.empty()) entry["reason"] = o.reason;
      entry["seconds"] = o.seconds;
      listed.push_back(std::move(entry));
      continue;
    }
    fmt::print("{} {}\n", o.status, one.name);
    if (!o.reason.empty()) fmt::print("{}\n", indented(o.reason));
    std::fflush(stdout);
  }
  std::size_t fallbacks = 0;
  for (const auto& [name, n] : count.fallbacks) fallbacks += n;
  if (c.json) {
    print_json({{"passed", passed},
                {"failed", failed},
                {"skipped", skipped},
                {"steps", count.steps},
                {"fallbacks", count.fallbacks},
                {"cases", listed}});
    return failed ? 1 : 0;
  }
  if (fallbacks != 0) {
    std::string names;
    for (const auto& [name, n] : count.fallbacks) names += fmt::format("{}{} {}", names.empty() ? "" : ", ", n, name);
    fmt::print("{} of {} steps by a fallback: {}\n", fallbacks, count.steps, names);
  }
  fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  return failed ? 1 : 0;
}

}  // namespace kiln::driver
