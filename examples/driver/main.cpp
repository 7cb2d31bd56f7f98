#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <new>

#include "kiln/core/error.hpp"
#include "kiln/version.hpp"
#include "options.hpp"

namespace {

using namespace kiln::driver;

constexpr int bad_input = 2;

// NAME=REST of an option's value.
std::pair<std::string, std::string> split(const std::string& option, const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == 0 || at == text.npos) throw CLI::ValidationError(option, "'" + text + "' is not NAME=VALUE");
  return {text.substr(0, at), text.substr(at + 1)};
}

std::int64_t extent(const std::string& option, const std::string& text) {
  std::int64_t n = 0;
  if (!CLI::detail::lexical_cast(text, n) || n < 0)
    throw CLI::ValidationError(option, "'" + text + "' is not an extent");
  return n;
}

std::function<void(const std::vector<std::string>&)> each(std::function<void(const std::string&)> one) {
  return [one](const std::vector<std::string>& all) {
    for (const std::string& text : all) one(text);
  };
}

// An option that may be repeated; CLI11 would otherwise take the words behind it too.
void repeated(CLI::App& app, const std::string& name, std::function<void(const std::string&)> one,
              const std::string& help, const std::string& value) {
  app.add_option_function<std::vector<std::string>>(name, each(std::move(one)), help)
      ->type_name(value)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

void add_model_options(CLI::App& app, model_options& o) {
  app.add_option("--target", o.target, "reference or eigen")
      ->check(CLI::IsMember({"reference", "eigen"}))
      ->capture_default_str();
  app.add_option("--threads", o.threads, "threads; 0: one for each processor")->check(CLI::Range(0, 1024));
  repeated(
      app, "--dim",
      [&o](const std::string& text) {
        auto [name, value] = split("--dim", text);
        o.dims.emplace_back(name, extent("--dim", value));
      },
      "the size of a named dim (1 unless told)", "NAME=N");
  repeated(
      app, "--shape",
      [&o](const std::string& text) {
        auto [name, value] = split("--shape", text);
        std::vector<std::int64_t> lens;
        for (const std::string& n : CLI::detail::split(value, ','))
          if (!value.empty()) lens.push_back(extent("--shape", n));
        o.shapes.emplace_back(name, std::move(lens));
      },
      "an input's extents", "INPUT=1,3,224,224");
  app.add_flag("--json", o.json, "print one JSON object");
}

void add_inputs(CLI::App& app, model_options& o) {
  app.add_option("model", o.model, "ONNX file")->required()->type_name("MODEL");
  repeated(
      app, "--input", [&o](const std::string& text) { o.inputs.push_back(split("--input", text)); },
      "an input's value, .pb or .npy; the others are filled", "NAME=FILE");
  app.add_option("--seed", o.seed, "of the random fillings");
}

void add_tolerance(CLI::App& app, tolerance& t) {
  app.add_option("--rtol", t.rtol, "relative tolerance")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--atol", t.atol, "absolute tolerance")->check(CLI::NonNegativeNumber)->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Compiles and runs deep-learning models.", "kiln");
  app.set_version_flag("--version", std::string("kiln ") + kiln::version_text);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  std::function<int()> verb;

  run_command run_c;
  CLI::App& run_app = *app.add_subcommand("run", "Run a model once");
  add_inputs(run_app, run_c);
  add_model_options(run_app, run_c);
  run_app.add_option("--output-dir", run_c.output_dir, "write output_K.pb into this folder")->type_name("DIR");
  run_app.callback([&] { verb = [&] { return run(run_c); }; });

  test_command test_c;
  CLI::App& test_app = *app.add_subcommand("test", "Check folders in ONNX backend-test layout");
  test_app.add_option("folders", test_c.folders, "folders with model.onnx and test_data_set_*")
      ->required()
      ->type_name("DIR");
  add_model_options(test_app, test_c);
  add_tolerance(test_app, test_c.allowed);
  test_app.add_option("--save", test_c.save, "write what was computed into this folder")->type_name("OUT");
  test_app.add_option("--timeout", test_c.timeout_seconds, "seconds for one case; 0: no limit")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  test_app.callback([&] { verb = [&] { return test(test_c); }; });

  perf_command perf_c;
  CLI::App& perf_app = *app.add_subcommand("perf", "Time a model");
  add_inputs(perf_app, perf_c);
  add_model_options(perf_app, perf_c);
  perf_app.add_option("--budget-ms", perf_c.budget_ms, "time to spend on the timed runs")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  perf_app.add_flag("--per-kernel", perf_c.per_kernel, "list each step's time, GFLOP/s and GB/s");
  perf_app.callback([&] { verb = [&] { return perf(perf_c); }; });

  show_command show_c;
  CLI::App& show_app = *app.add_subcommand("show", "Print a model's graph before and after, its plan and report");
  add_inputs(show_app, show_c);
  add_model_options(show_app, show_c);
  show_app.add_option("--svg", show_c.svg, "draw the optimised graph into this file")->type_name("FILE");
  show_app.callback([&] { verb = [&] { return show(show_c); }; });

  verify_command verify_c;
  CLI::App& verify_app = *app.add_subcommand("verify", "Compare a target with the reference on random inputs");
  add_inputs(verify_app, verify_c);
  add_model_options(verify_app, verify_c);
  add_tolerance(verify_app, verify_c.allowed);
  verify_app.callback([&] { verb = [&] { return verify(verify_c); }; });

  model_options export_c;
  std::string export_path;
  CLI::App& export_app = *app.add_subcommand("export", "Write a model as ONNX");
  add_inputs(export_app, export_c);
  add_model_options(export_app, export_c);
  export_app.add_option("--onnx", export_path, "the file to write")->required()->type_name("FILE");
  export_app.callback([&] { verb = [&] { return export_onnx(export_c, export_path); }; });

  bool ops_json = false, ops_of_onnx = false, ops_markdown = false;
  CLI::App& ops_app = *app.add_subcommand("ops", "List the ops");
  ops_app.add_flag("--json", ops_json, "print one JSON object");
  CLI::Option* const of_onnx = ops_app.add_flag("--onnx", ops_of_onnx, "list the ONNX operators that import instead");
  ops_app.add_flag("--markdown", ops_markdown, "print docs/onnx.md")->needs(of_onnx);
  ops_app.callback([&] {
    verb = [&] {
      if (!ops_of_onnx) return ops(ops_json);
      return ops_onnx(ops_markdown ? listing::markdown : ops_json ? listing::json : listing::text);
    };
  });

  if (argc > 1 && argv[1][0] != '-' &&
      app.get_subcommands([&](CLI::App* verb) { return verb->get_name() == argv[1]; }).empty()) {
    fmt::print(stderr, "kiln: error: no verb '{}'; kiln --help lists them\n", argv[1]);
    return bad_input;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : bad_input;
  }
  try {
    return verb();
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "kiln: error: out of memory\n");
  } catch (const std::exception& e) {
    fmt::print(stderr, "kiln: error: {}\n", e.what());
  }
  return bad_input;
}
