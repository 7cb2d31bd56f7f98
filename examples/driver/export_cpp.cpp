#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "files.hpp"
#include "kiln/cpp_export/cpp_export.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace kiln::driver {

namespace {

// The file's name as an identifier; a file called model.onnx goes by its folder.
std::string name_of(const std::string& model) {
  const std::filesystem::path path = std::filesystem::absolute(model).lexically_normal();
  std::string name = (path.stem() == "model" ? path.parent_path().filename() : path.stem()).string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return is_program_name(name) ? name : "model_" + name;
}

}  // namespace

int export_cpp(const model_options& c, const std::string& folder, std::string name) {
  program p = import_model(c).graph;
  // a static program has fixed dims: those without a value are 1, as for every verb
  model_options fixed = c;
  std::vector<dimension> symbols;
  for (value_id v : p.main().parameters())
    for (const dimension d : p.main().shape_of(v).lens)
      if (!d.is_constant()) {
        small_vector<dimension> all;
        collect_symbols(d, all);
        for (const dimension s : all) symbols.push_back(s);
      }
  for (const dimension s : symbols) {
    const std::string name(to_string(s));
    bool known = false;
    for (const auto& [given, value] : fixed.dims) known = known || given == name;
    if (!known) fixed.dims.emplace_back(name, 1);
  }
  if (!symbols.empty()) p = import_model(fixed).graph;
  {
    const busy_line busy(fmt::format("writing {}", c.model));
    optimize(p, compile_options_of(c).passes);
  }
  cpp_options options;
  options.name = name.empty() ? name_of(c.model) : std::move(name);
  options.origin = std::filesystem::path(c.model).filename().string();
  const cpp_project project = to_cpp(p, options);
  const std::filesystem::path to = folder;
  std::filesystem::create_directories(to);
  for (const auto& [file, text] : project.files) write_file(to / file, text);
  write_file(to / project.weights_name,
             {reinterpret_cast<const char*>(project.weights.data()), project.weights.size()});
  if (c.json)
    print_json({{"model", c.model},
                {"name", options.name},
                {"folder", folder},
                {"kernels", project.steps},
                {"arena_bytes", project.arena_bytes},
                {"weight_bytes", project.weights.size()}});
  else
    fmt::print("{}: {} kernels, {} bytes of memory, {} bytes of weights; build it with cmake -S {}\n", options.name,
               project.steps, project.arena_bytes, project.weights.size(), folder);
  return 0;
}

}  // namespace kiln::driver
