#include <fmt/format.h>

#include "debug.hpp"
#include "files.hpp"
#include "json.hpp"
#include "kiln/core/object.hpp"
#include "kiln/onnx/tensor.hpp"
#include "kiln/runtime/run_options.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "statistics.hpp"

namespace kiln::driver {

namespace {

// Type, extents and the first values of a tensor.
std::string summary(const argument& a) {
  constexpr std::int64_t shown = 8;
  std::string values;
  const std::int64_t n = a.elements();
  const argument dense = a.contiguous();
  if (a.get_shape().type == dtype::string) {
    for (const std::string& s : strings_of(dense)) {
      if (!values.empty()) values += ", ";
      if (values.size() > 200) break;
      values += "'" + s + "'";
    }
    return fmt::format("{} {{{}}}", to_string(shape(a.get_shape().type, a.get_shape().lens)), values);
  }
  if (a.get_shape().type == dtype::sequence) {
    for (const argument& item : items_of(a)) values += (values.empty() ? "" : ", ") + summary(item);
    return "sequence {" + values + "}";
  }
  if (is_complex(a.get_shape().type)) {
    std::int64_t k = 0;
    for (const std::complex<double>& z : complexes_of(dense)) {
      if (k++ == shown) break;
      values += fmt::format("{}{}{:+}i", k > 1 ? ", " : "", z.real(), z.imag());
    }
    return fmt::format("{} {{{}{}}}", to_string(shape(a.get_shape().type, a.get_shape().lens)), values,
                       n > shown ? ", ..." : "");
  }
  if (a.get_shape().type == dtype::map) {
    const map_object& m = entries_of(a);
    values = m.is_empty() ? "" : "keys " + summary(m.keys);
    for (const argument& v : m.values) values += ", " + summary(v);
    return "map {" + values + "}";
  }
  if (a.get_shape().type == dtype::optional) {
    const argument* held = value_of_optional(a);
    return "optional {" + (held ? summary(*held) : std::string()) + "}";
  }
  for (std::int64_t i = 0; i < std::min(n, shown); ++i) {
    const std::byte* at = dense.data() + static_cast<std::size_t>(i) * size_of(a.get_shape().type);
    if (i) values += ", ";
    visit_compute(a.get_shape().type, [&]<class T>(type_tag<T>) {
      T v{};
      decode(a.get_shape().type, at, &v, 1);
      values += fmt::format("{}", v);
    });
  }
  return fmt::format("{} {{{}{}}}", to_string(shape(a.get_shape().type, a.get_shape().lens)), values,
                     n > shown ? ", ..." : "");
}

}  // namespace

int run(const run_command& c) {
  const named_arguments given = read_inputs(c);
  auto [model, in] = load_ready(c, given, compile_for_target(c), load_for_target(c));
  const executable& exe = model.exe;

  std::vector<argument> outputs;
  double run_ms = 0;
  {
    const busy_line busy("running");
    outputs = make_outputs(exe, in.arguments, c);
    workspace w = exe.make_workspace();
    run_options options;
    log_steps(exe, options);
    const stopwatch clock;
    exe.run(w, in.arguments, outputs, options);
    run_ms = clock.ms();
  }

  json listed = json::array();
  file_group files;
  if (!c.output_dir.empty()) make_folder(c.output_dir);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const port& p = exe.outputs()[k];
    json entry = {{"name", p.name}};
    entry.update(json_of(shape(outputs[k].get_shape().type, outputs[k].get_shape().lens)));
    if (!c.output_dir.empty()) {
      const std::filesystem::path path = std::filesystem::path(c.output_dir) / fmt::format("output_{}.pb", k);
      files.add(path, [&](const std::string& name) { onnx::write_tensor(name, outputs[k], p.name); });
      entry["file"] = path.string();
    }
    listed.push_back(std::move(entry));
  }
  files.commit();

  if (c.json) {
    print_json({{"model", c.model}, {"target", c.target}, {"run_ms", run_ms}, {"outputs", listed}});
  } else {
    for (std::size_t k = 0; k < outputs.size(); ++k)
      fmt::print("{} = {}\n", exe.outputs()[k].name, summary(outputs[k]));
  }
  return 0;
}

}  // namespace kiln::driver
