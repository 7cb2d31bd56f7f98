#include <fmt/format.h>

#include "debug.hpp"
#include "files.hpp"
#include "kiln/graph/picture.hpp"
#include "kiln/runtime/report.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "model.hpp"
#include "report.hpp"

namespace kiln::driver {

namespace {

// What a saved program says of itself.
std::string saved_text(const saved_program_info& info) {
  std::string out =
      fmt::format("kiln {}, {} bytes, {} of them constants\n", info.version, info.file_bytes, info.constant_bytes);
  if (!info.target.empty()) out += fmt::format("compiled for {} ({})\n", info.target, info.format);
  out += info.has_source ? "with its source: it can be compiled for another machine\n" : "without its source\n";
  for (const auto& [name, value] : info.options) out += fmt::format("  {} = {}\n", name, value);
  return out;
}

}  // namespace

int show(const show_command& c) {
  std::string before;
  const compiler make = [&, compile_it = compile_for_target(c)](program p, const compile_options& options) {
    before = graph_text(p);
    return compile_it(std::move(p), options);
  };
  const executable exe = load_model(c, read_inputs(c), make, load_for_target(c)).exe;
  const compile_report& r = exe.report();
  if (!c.svg.empty()) write_file(c.svg, to_svg(exe.optimized()));
  if (c.json) {
    json out = report_object(r);
    out["model"] = c.model;
    out["target"] = c.target;
    out["inputs"] = json_of(exe.inputs());
    out["outputs"] = json_of(exe.outputs());
    out["kernels"] = r.steps.size();
    out["before"] = before;
    out["after"] = graph_text(exe.optimized());
    print_json(out);
    return 0;
  }
  if (before.empty()) fmt::print("== saved\n{}\n", saved_text(inspect(c.model)));
  if (!before.empty()) fmt::print("== imported\n{}\n", before);
  fmt::print("== optimized\n{}\n", graph_text(exe.optimized()));
  fmt::print("== plan for {}\n{}\n== report\n{}", c.target, plan_text(r), report_text(r));
  return 0;
}

}  // namespace kiln::driver
