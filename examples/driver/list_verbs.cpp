#include "list_verbs.hpp"

namespace kiln::driver {

namespace {

listing form_of(bool markdown, bool json) {
  return markdown ? listing::markdown : json ? listing::json : listing::text;
}

int list_operators(const list_flags& flags) {
  const listing how = form_of(flags.ops_markdown, flags.ops_json);
  switch (flags.of) {
    case list_flags::operators::onnx: return ops_onnx(how);
    case list_flags::operators::tensorflow: return ops_tensorflow(how);
    case list_flags::operators::tflite: return ops_tflite(how);
    case list_flags::operators::kiln: break;
  }
  return ops(flags.ops_json);
}

void add_ops(CLI::App& app, list_flags& flags, std::function<int()>& verb) {
  using operators = list_flags::operators;
  app.add_flag("--json", flags.ops_json, "print exactly one JSON object");
  const auto add = [&](const char* flag, operators whose, const char* help) {
    return app.add_flag_callback(
        flag, [&flags, whose] { flags.of = whose; }, help);
  };
  CLI::Option* const of_onnx = add("--onnx", operators::onnx, "list the ONNX operators that import instead");
  CLI::Option* const of_tf = add("--tf", operators::tensorflow, "list TensorFlow's operators that import instead");
  of_tf->excludes(of_onnx);
  add("--tflite", operators::tflite, "list TFLite's operators that import instead")->excludes(of_onnx, of_tf);
  app.add_flag("--markdown", flags.ops_markdown,
               "with --onnx print docs/onnx.md, with --tf docs/tensorflow.md, with --tflite docs/tflite.md");
  app.callback([&flags, &verb] {
    if (flags.ops_markdown && flags.of == operators::kiln)
      throw CLI::RequiresError("--markdown", "--onnx, --tf or --tflite");
    verb = [&flags] { return list_operators(flags); };
  });
}

}  // namespace

void add_list_verbs(CLI::App& app, list_flags& flags, std::function<int()>& verb) {
  add_ops(*app.add_subcommand("ops", "List the ops"), flags, verb);
  CLI::App& options_verb = *app.add_subcommand("options", "List the options of compilations and runs");
  options_verb.add_flag("--json", flags.options_json, "print exactly one JSON object");
  options_verb.add_flag("--markdown", flags.options_markdown, "print docs/options.md");
  options_verb.callback(
      [&flags, &verb] { verb = [&flags] { return options(form_of(flags.options_markdown, flags.options_json)); }; });
}

}  // namespace kiln::driver
