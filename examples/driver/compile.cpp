#include <fmt/format.h>

#include <filesystem>

#include "json.hpp"
#include "kiln/runtime/compile_cache.hpp"
#include "kiln/runtime/saved_program.hpp"
#include "model.hpp"
#include "progress.hpp"

namespace kiln::driver {

int compile(const compile_command& c) {
  program source;
  const compiler make = [&, compile_it = compile_for_target(c)](program p, const compile_options& options) {
    if (c.portable) source = p;
    return compile_it(std::move(p), options);
  };
  const compiled_model model = load_model(c, read_inputs(c), make);
  if (c.portable)
    save(model.exe, source, c.file);
  else
    save(model.exe, c.file);
  const auto bytes = std::filesystem::file_size(c.file);
  if (c.json)
    print_json({{"model", c.model},
                {"target", c.target},
                {"file", c.file},
                {"bytes", bytes},
                {"portable", c.portable},
                {"compile_ms", model.compile_ms}});
  else
    fmt::print("{}: {} kernels for {}, {} bytes\n", c.file, model.exe.report().steps.size(), c.target, bytes);
  return 0;
}

int cache(const cache_command& c) {
  std::size_t removed = 0;
  if (c.limit_mib >= 0) removed = shrink_cache(c.folder, static_cast<std::size_t>(c.limit_mib) << 20);
  std::size_t bytes = 0;
  json listed = json::array();
  for (const cached_program& p : cached_programs(c.folder)) {
    bytes += p.bytes;
    const std::string outputs = fmt::format("{}", fmt::join(p.outputs, ", "));
    if (c.json)
      listed.push_back({{"file", p.file.string()}, {"target", p.target}, {"outputs", p.outputs}, {"bytes", p.bytes}});
    else
      fmt::print("{:>14} {:<10} {} {}\n", p.bytes, p.target.empty() ? "damaged" : p.target, p.file.filename().string(),
                 outputs);
  }
  if (c.json)
    print_json({{"folder", c.folder}, {"bytes", bytes}, {"removed_bytes", removed}, {"programs", listed}});
  else
    fmt::print("{:>14} bytes in all, {} removed\n", bytes, removed);
  return 0;
}

}  // namespace kiln::driver
