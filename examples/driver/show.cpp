#include <fmt/format.h>

#include "debug.hpp"
#include "files.hpp"
#include "kiln/graph/picture.hpp"
#include "kiln/runtime/report.hpp"
#include "model.hpp"
#include "report.hpp"

namespace kiln::driver {

int show(const show_command& c) {
  std::string before;
  const compiler make = [&, compile_it = compile_for_target(c)](program p, const compile_options& options) {
    before = graph_text(p);
    return compile_it(std::move(p), options);
  };
  const executable exe = load_model(c, read_inputs(c), make).exe;
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
  fmt::print("== imported\n{}\n== optimized\n{}\n", before, graph_text(exe.optimized()));
  fmt::print("== plan for {}\n{}\n== report\n{}", c.target, plan_text(r), report_text(r));
  return 0;
}

}  // namespace kiln::driver
