#include <fmt/format.h>

#include <optional>
#include <set>

#include "cases.hpp"
#include "compare.hpp"
#include "files.hpp"
#include "isolate.hpp"
#include "json.hpp"
#include "kiln/onnx/tensor.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "statistics.hpp"

namespace kiln::driver {

namespace {

// A set's inputs under the names in their files: what the model calls them in every known exporter's tests.
std::vector<onnx::named_argument> read_set(const data_set& set) {
  std::vector<onnx::named_argument> out;
  for (const std::filesystem::path& file : set.inputs) out.push_back(onnx::read_tensor(file.string()));
  return out;
}

named_arguments by_own_name(const std::vector<onnx::named_argument>& files) {
  named_arguments out;
  for (const auto& [name, value] : files) out.emplace(name, value);
  return out;
}

// By position, which is what the layout defines.
named_arguments by_position(const std::vector<onnx::named_argument>& files, std::span<const port> inputs) {
  if (files.size() != inputs.size())
    raise(errc::invalid_argument,
          fmt::format("{} input files, but the model takes {}: {}", files.size(), inputs.size(), names_of(inputs)));
  named_arguments out;
  for (std::size_t k = 0; k < files.size(); ++k) out.emplace(inputs[k].name, files[k].value);
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

// Runs one case; the result has one line for each thing that is wrong.
std::string check(const test_case& c, const test_command& command) {
  hide_progress();
  model_options o = command;
  o.model = c.model().string();
  const compiler make = compile_for_target(o);
  std::string wrong;
  std::optional<compiled_model> model;
  for (const data_set& set : c.sets) {
    const std::vector<onnx::named_argument> files = read_set(set);
    if (!model || model->built_for_values) {
      model.reset();
      model.emplace(load_model(o, by_own_name(files), make));
    }
    const std::span<const port> ports = model->exe.outputs();
    const named_arguments given = by_position(files, model->exe.inputs());
    std::vector<argument> outputs;
    try {
      outputs = model->exe.run(prepare_inputs(model->exe.inputs(), given, o).arguments);
    } catch (const error& e) {
      if (e.code() != errc::shape_mismatch) throw;
      const ready_model sized = load_ready(o, given, make);
      outputs = sized.model.exe.run(sized.in.arguments);
    }
    if (!command.save.empty()) save(std::filesystem::path(command.save) / c.name / set.name, outputs, ports);
    if (set.outputs.size() != outputs.size())
      wrong += fmt::format("{}: {} expected outputs, but the model gives {}\n", set.name, set.outputs.size(),
                           outputs.size());
    for (std::size_t k = 0; k < std::min(outputs.size(), set.outputs.size()); ++k) {
      const argument expected = onnx::read_tensor(set.outputs[k].string()).value;
      if (const difference d = compare(outputs[k], expected, command.allowed))
        wrong += fmt::format("{}: output {} '{}': {}\n", set.name, k, ports[k].name, d.reason);
    }
  }
  return wrong;
}

struct outcome {
  std::string status, reason;
  double seconds = 0;
};

outcome run_case(const test_case& c, const test_command& command, const std::function<void()>& waiting) {
  if (c.sets.empty()) return {"skipped", "no test_data_set_*", 0};
  const stopwatch clock;
  isolated done = isolate([&] { return check(c, command); }, command.timeout_seconds, waiting);
  std::string reason = done.failure.empty() ? done.report : done.failure;
  while (reason.ends_with('\n')) reason.pop_back();
  return {reason.empty() ? "passed" : "failed", std::move(reason), clock.ms() / 1e3};
}

std::string indented(std::string text) {
  for (std::size_t i = 0; (i = text.find('\n', i)) != text.npos; i += 3) text.insert(i + 1, "  ");
  return "  " + text;
}

}  // namespace

int test(const test_command& c) {
  // a wrong name is one error, not one for each case; a GPU's runtime does not survive the fork of a case
  if (!c.target.starts_with("hip")) make_target(c.target);
  const std::vector<test_case> cases = find_cases(c.folders);
  if (!c.save.empty()) {
    make_folder(c.save);
    std::set<std::string> names;
    for (const test_case& one : cases)
      if (!names.insert(one.name).second)
        raise(errc::invalid_argument, fmt::format("--save: two folders are called {}", one.name));
  }

  std::size_t passed = 0, failed = 0, skipped = 0;
  json listed = json::array();
  progress_line line;
  for (const test_case& one : cases) {
    const outcome o = run_case(
        one, c, [&] { line.show(fmt::format("[{}/{}] {}", passed + failed + skipped + 1, cases.size(), one.name)); });
    line.clear();
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
  if (c.json)
    print_json({{"passed", passed}, {"failed", failed}, {"skipped", skipped}, {"cases", listed}});
  else
    fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  return failed ? 1 : 0;
}

}  // namespace kiln::driver
