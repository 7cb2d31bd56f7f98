#include "command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <memory>
#include <sstream>

#include "compile_flags.hpp"
#include "genai.hpp"
#include "graph_flags.hpp"
#include "kiln/version.hpp"
#include "list_verbs.hpp"
#include "options.hpp"
#include "quantize_flags.hpp"
#include "serve.hpp"

namespace kiln::driver {

namespace {

using assignment = std::pair<std::string, std::string>;

// NAME=REST of an option's value.
assignment split(const std::string& option, const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == 0 || at == text.npos) throw CLI::ValidationError(option, "'" + text + "' is not NAME=VALUE");
  return {text.substr(0, at), text.substr(at + 1)};
}

std::int64_t extent(const std::string& option, std::string_view text) {
  std::int64_t n = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (code != std::errc() || end != text.data() + text.size() || n < 0)
    throw CLI::ValidationError(option, "'" + std::string(text) + "' is not an extent");
  return n;
}

// "1,3,224,224"; nothing is rank 0.
std::vector<std::int64_t> extents(const std::string& option, std::string_view text) {
  std::vector<std::int64_t> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    out.push_back(extent(option, text.substr(0, end)));
    if (end + 1 == text.size()) throw CLI::ValidationError(option, "an extent is missing behind the last comma");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// An option NAME=VALUE that may be repeated, once for each name; CLI11 would otherwise take the words behind it too.
template <class Value, class Read>
void named_values(CLI::App& app, const std::string& option, std::vector<std::pair<std::string, Value>>& into, Read read,
                  const std::string& help, const std::string& form) {
  app.add_option_function<std::vector<std::string>>(
         option,
         [&into, option, read](const std::vector<std::string>& all) {
           for (const std::string& text : all) {
             auto [name, value] = split(option, text);
             for (const auto& before : into)
               if (before.first == name) throw CLI::ValidationError(option, "'" + name + "' is given twice");
             into.emplace_back(std::move(name), read(value));
           }
         },
         help)
      ->type_name(form)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

const std::function<std::string(const std::string&)> as_it_is = [](const std::string& text) { return text; };

// Finite and not below zero: a budget or limit without end is never met, and a NaN equals nothing.
CLI::Validator finite_amount() {
  return {[](std::string& text) -> std::string {
            std::istringstream in(text);
            double value = -1;
            return in >> value && in.eof() && std::isfinite(value) && value >= 0
                       ? ""
                       : "'" + text + "' is not a number from 0 on";
          },
          "NUMBER"};
}

// hip:N is the N-th device, hip:sm_90 or hip:gfx90a compiles for an absent one.
CLI::Validator target_name() {
  return {[](std::string& text) -> std::string {
            const bool known = text == "reference" || text == "eigen" || text == "hip" ||
                               (text.starts_with("hip:") && text.size() > 4);
            return known ? "" : "'" + text + "' is none of reference, eigen, hip, hip:DEVICE, hip:ARCHITECTURE";
          },
          "reference|eigen|hip[:DEVICE|:ARCHITECTURE]"};
}

// A word that is another option, and no value of one that it stands behind.
CLI::Validator no_option() {
  return {[](std::string& text) -> std::string {
            return text.starts_with('-') ? "'" + text + "' is an option: the value before it is missing" : "";
          },
          ""};
}

// An option that is one of some named values.
template <class Named, class All>
CLI::Option* named_choice(CLI::App& app, const std::string& option, Named& into, const All& all,
                          const std::string& help) {
  std::vector<std::string> names;
  for (const Named n : all) names.emplace_back(to_string(n));
  return app
      .add_option_function<std::string>(
          option,
          [&into, &all](const std::string& name) {
            for (const Named n : all)
              if (to_string(n) == name) into = n;
          },
          help)
      ->check(CLI::IsMember(names))
      ->default_str(std::string(to_string(into)));
}

void add_model_options(CLI::App& app, model_options& o) {
  app.add_option("--target", o.target, "where it runs")->check(target_name())->capture_default_str();
  named_values(
      app, "--dim", o.dims, [](const std::string& text) { return extent("--dim", text); },
      "the size of a named dim, as of input.0 for an unnamed one (1 unless told); may be repeated", "NAME=N");
  named_values(
      app, "--shape", o.shapes, [](const std::string& text) { return extents("--shape", text); },
      "an input's extents; they agree with those that the model declares; may be repeated", "INPUT=1,3,224,224");
  add_graph_flags(app, o);
  add_compile_flags(app, o.compiling);
  app.add_flag("--json", o.json, "print exactly one JSON object, also about an error");
}

// Verbs that compile a model for a run, not those that write it.
void add_precision(CLI::App& app, model_options& o) {
  CLI::Option_group& one = *app.add_option_group("precision");
  for (const quantize::precision p : quantize::narrow_precisions)
    one.add_flag_callback(
        precision_flag(p), [&o, p] { o.precision = p; }, std::string(quantize::info_of(p).help));
  one.require_option(0, 1);
  app.add_option("--table", o.table,
                 "a calibration table for --int8, --fp8 or --fp16, as kiln quantize --save-table writes it")
      ->type_name("FILE")
      ->check(no_option());
}

void add_inputs(CLI::App& app, model_options& o) {
  app.add_option("model", o.model, "ONNX file, frozen TensorFlow graph, or a program that kiln compile wrote")
      ->required()
      ->type_name("MODEL");
  named_values(app, "--input", o.inputs, as_it_is,
               "an input's value, .pb (TensorProto) or .npy; it replaces a default that the model has; the others are "
               "filled, floats uniform in [-1, 1), integers and bools 1; may be repeated",
               "NAME=FILE");
  app.add_option("--seed", o.seed, "of the random fillings")->capture_default_str();
}

void add_tolerance(CLI::App& app, tolerance& t) {
  app.add_option("--rtol", t.rtol, "relative tolerance")->check(finite_amount())->capture_default_str();
  app.add_option("--atol", t.atol, "absolute tolerance")->check(finite_amount())->capture_default_str();
}

// What every verb's options are written into; it lives as long as the verb that is returned.
struct commands {
  run_command run;
  test_command test;
  perf_command perf;
  show_command show;
  verify_command verify;
  compile_command compile;
  cache_command cache;
  quantize_command quantize;
  model_options exported;
  std::string export_path, export_folder, export_name;
  list_flags lists;
  std::function<int()> verb;
};

// Verbs about saved programs.
void add_saving_verbs(CLI::App& app, commands& c) {
  CLI::App& compile_verb = *app.add_subcommand("compile", "Compile a model into a file that the other verbs take");
  add_inputs(compile_verb, c.compile);
  add_model_options(compile_verb, c.compile);
  add_precision(compile_verb, c.compile);
  compile_verb.add_option("-o,--output", c.compile.file, "the file to write: .kiln")->required()->type_name("FILE");
  compile_verb.add_flag("--portable", c.compile.portable,
                        "keep the source, too: where the compiled program does not run, a load compiles that");
  compile_verb.callback([&c] { c.verb = [&c] { return compile(c.compile); }; });

  CLI::App& cache_verb = *app.add_subcommand("cache", "List a folder of compiled programs (--cache of other verbs)");
  cache_verb.add_option("folder", c.cache.folder, "the folder")->required()->type_name("DIR");
  cache_verb.add_option("--limit", c.cache.limit_mib, "remove the least recently used beyond so many MiB")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30));
  cache_verb.add_flag("--json", c.cache.json, "print exactly one JSON object");
  cache_verb.callback([&c] { c.verb = [&c] { return cache(c.cache); }; });
}

// Names or folders, one behind each mention of the option.
CLI::Option* add_list(CLI::App& app, const std::string& option, std::vector<std::string>& into, const std::string& help,
                      const std::string& form) {
  return app.add_option(option, into, help + "; may be repeated")
      ->type_name(form)
      ->expected(1)
      ->check(no_option())
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

void add_calibration(CLI::App& verb, quantize_command& q) {
  add_list(verb, "--data", q.data,
           "samples to calibrate with: a folder with input_K.pb, NAME.npy or NAME.pb, or of such folders", "DIR");
  verb.add_option("--table", q.table, "ranges to take instead of calibrating")->type_name("FILE")->check(no_option());
  verb.add_option("--save-table", q.save_table, "write the ranges")->type_name("FILE")->check(no_option());
  named_choice(verb, "--table-form", q.table_form, quantize::table_forms, "of what --save-table writes");
  quantize::calibration_options& o = q.how.calibration;
  named_choice(verb, "--method", o.method, quantize::calibration_methods, "how a range is chosen from values");
  verb.add_option("--percentile", o.percentile, "what --method percentile keeps")->capture_default_str();
  verb.add_option("--bins", o.bins, "of histograms (128 of entropy, else 2048)");
  verb.add_flag("--ignore-infinities", o.ignore_infinities, "leave out the infinities of masks");
}

void add_weight_blocks(CLI::App& verb, quantize::int4_options& o) {
  verb.add_option("--block-size", o.format.block, "weights of a block of int4, a power of two")->capture_default_str();
  verb.add_option("--bits", o.format.bits, "bits of a weight of int4: 2, 4 or 8")->capture_default_str();
  verb.add_flag(
      "--asymmetric", [&o](std::int64_t) { o.format.symmetric = false; }, "blocks of int4 have zero points");
  named_choice(verb, "--weight-method", o.method, quantize::weight_methods,
               "how weights of int4 are rounded; gptq needs --data");
  verb.add_flag("--accuracy-level-4", o.bytes_suffice,
                "products with weights of int4 may round their other operand to 8 bits");
}

void add_quantize_verb(CLI::App& app, commands& c) {
  quantize_command& q = c.quantize;
  CLI::App& verb = *app.add_subcommand("quantize", "Write a model in another precision as ONNX");
  add_inputs(verb, q);
  add_model_options(verb, q);
  named_choice(verb, "--to", q.precision, quantize::narrow_precisions, "the precision")->required()->default_str("");
  verb.add_option("-o,--output", q.file, "the file to write: .onnx")->required()->type_name("FILE");
  add_calibration(verb, q);
  add_static_flags(verb, q);
  add_list(verb, "--exclude", q.how.exclude, "a dot or convolution that stays in floats, by its node's name", "NODE");
  add_list(verb, "--only", q.how.only, "a dot or convolution that alone is quantized", "NODE");
  add_weight_blocks(verb, q.how.how.int4);
  verb.add_option("--ops", q.how.ops, "these ops alone, by kiln's names: A,B")->delimiter(',')->type_name("OPS");
  CLI::Option* const form = named_choice(verb, "--format", q.form, onnx::file_forms,
                                         "qdq: dequantization around floats; qoperator: operators on integers");
  form->default_str("qdq, of int4 qoperator");
  verb.add_flag("--report", q.report, "compare with the model on the same samples, worst layer first");
  verb.add_option("--svg", q.svg, "draw the model, colored by what --report says")
      ->type_name("FILE")
      ->check(no_option());
  verb.callback([&c, form] {
    using enum quantize::precision;
    if (form->count() != 0 && c.quantize.precision != int8 && c.quantize.precision != int4)
      throw CLI::ValidationError("--format", fmt::format("means nothing to --to {}", to_string(c.quantize.precision)));
    c.verb = [&c] { return quantize(c.quantize); };
  });
}

void add_model_verbs(CLI::App& app, commands& c) {
  CLI::App& run_verb = *app.add_subcommand("run", "Run a model once and print its outputs");
  add_inputs(run_verb, c.run);
  add_model_options(run_verb, c.run);
  add_precision(run_verb, c.run);
  run_verb.add_option("--output-dir", c.run.output_dir, "write output_K.pb into this folder, in output order")
      ->type_name("DIR");
  run_verb.callback([&c] { c.verb = [&c] { return run(c.run); }; });

  CLI::App& test_verb = *app.add_subcommand("test", "Check folders in ONNX backend-test layout");
  test_verb.add_option("folders", c.test.folders, "folders with model.onnx and test_data_set_*")
      ->required()
      ->type_name("DIR");
  add_model_options(test_verb, c.test);
  add_tolerance(test_verb, c.test.allowed);
  test_verb.add_option("--save", c.test.save, "write what was computed into OUT/<folder>/test_data_set_N/output_K.pb")
      ->type_name("OUT");
  test_verb.add_option("--timeout", c.test.timeout_seconds, "seconds for one case; 0: no limit")
      ->check(finite_amount())
      ->capture_default_str();
  test_verb.callback([&c] { c.verb = [&c] { return test(c.test); }; });

  CLI::App& perf_verb = *app.add_subcommand("perf", "Time a model");
  add_inputs(perf_verb, c.perf);
  add_model_options(perf_verb, c.perf);
  add_precision(perf_verb, c.perf);
  perf_verb.add_option("--budget-ms", c.perf.budget_ms, "time to spend on the timed runs, five of them at least")
      ->check(finite_amount())
      ->capture_default_str();
  perf_verb.add_flag("--per-kernel", c.perf.per_kernel, "list each step's time, GFLOP/s and GB/s");
  perf_verb.add_option("--trace", c.perf.trace, "write when the steps of some runs ran, for ui.perfetto.dev")
      ->type_name("FILE");
  perf_verb.callback([&c] { c.verb = [&c] { return perf(c.perf); }; });

  CLI::App& show_verb = *app.add_subcommand("show", "Print a model's graph before and after, its plan and report");
  add_inputs(show_verb, c.show);
  add_model_options(show_verb, c.show);
  add_precision(show_verb, c.show);
  show_verb.add_option("--svg", c.show.svg, "draw the optimized graph into this file")->type_name("FILE");
  show_verb.callback([&c] { c.verb = [&c] { return show(c.show); }; });

  CLI::App& verify_verb =
      *app.add_subcommand("verify", "Compare a target with the reference and name the first step that differs");
  add_inputs(verify_verb, c.verify);
  add_model_options(verify_verb, c.verify);
  add_precision(verify_verb, c.verify);
  add_tolerance(verify_verb, c.verify.allowed);
  verify_verb.callback([&c] { c.verb = [&c] { return verify(c.verify); }; });

  CLI::App& export_verb = *app.add_subcommand("export", "Write a model, as imported, as ONNX, or as C++ without kiln");
  add_inputs(export_verb, c.exported);
  add_model_options(export_verb, c.exported);
  CLI::Option_group& kind = *export_verb.add_option_group("form");
  kind.add_option("--onnx", c.export_path, "the file to write")->type_name("FILE");
  kind.add_option("--cpp", c.export_folder, "the folder to write; dims without a value are 1")->type_name("DIR");
  kind.require_option(1);
  export_verb.add_option("--name", c.export_name, "of the C++ namespace and files; the model's unless told")
      ->type_name("NAME");
  export_verb.callback([&c] {
    c.verb = [&c] {
      return c.export_folder.empty() ? export_onnx(c.exported, c.export_path)
                                     : export_cpp(c.exported, c.export_folder, c.export_name);
    };
  });
}

}  // namespace

std::function<int()> read_command_line(int argc, const char* const* argv) {
  CLI::App app("Compiles and runs deep-learning models.", "kiln");
  app.set_version_flag("--version", std::string("kiln ") + version_text);
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 fine, 1 a comparison failed, 2 bad input or usage. KILN_DEBUG=1 to 5 logs to standard error: "
      "graph, what each pass changed, plan, the kernels' source, timings.");
  app.failure_message(CLI::FailureMessage::simple);
  const auto c = std::make_shared<commands>();
  add_model_verbs(app, *c);
  add_saving_verbs(app, *c);
  add_quantize_verb(app, *c);
  add_list_verbs(app, c->lists, c->verb);
#if KILN_DRIVER_SERVE
  add_serve(app, c->verb);
#endif
#if KILN_DRIVER_LANGUAGE
  add_genai(app, c->verb);
#endif
  if (argc > 1 && argv[1][0] != '-' &&
      app.get_subcommands([&](CLI::App* verb) { return verb->get_name() == argv[1]; }).empty())
    throw usage_error(fmt::format("no verb '{}'; kiln --help lists them", argv[1]));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, wrong;
    if (app.exit(e, out, wrong) != 0) {
      std::string why = wrong.str();
      while (why.ends_with('\n')) why.pop_back();
      throw usage_error(why);
    }
    return [text = out.str()] {
      fmt::print("{}", text);
      return 0;
    };
  }
  return [c] { return c->verb(); };
}

}  // namespace kiln::driver
