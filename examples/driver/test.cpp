#include <fmt/format.h>

#include <optional>
#include <set>

#include "cases.hpp"
#include "compare.hpp"
#include "files.hpp"
#include "isolate.hpp"
#include "json.hpp"
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
    out.emplace(inputs[k].name, read_as(set.inputs[k], holder_of(inputs[k]), onnx::to_dtype(inputs[k].type)));
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
  const std::vector<onnx::value_info> inputs = onnx::model_inputs(o.model);
  for (const data_set& set : c.sets) {
    const named_arguments given = read_set(set, inputs);
    if (!model || model->built_for_values) {
      model.reset();
      model.emplace(load_model(o, given, make));
    }
    const std::span<const port> ports = model->exe.outputs();
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
      // an output of open rank is the tensor that the run gave
      const dtype type = ports[k].type.type == dtype::optional ? outputs[k].get_shape().type : ports[k].type.type;
      const argument expected = read_as(set.outputs[k], type, type);
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
