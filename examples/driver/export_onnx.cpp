#include <fmt/format.h>

#include <filesystem>

#include "json.hpp"
#include "kiln/onnx/export.hpp"
#include "model.hpp"
#include "progress.hpp"

namespace kiln::driver {

int export_onnx(const model_options& c, const std::string& path) {
  {
    const busy_line busy(fmt::format("writing {}", path));
    onnx::imported model = import_model(c);
    onnx::write_model(path, model.graph, {std::move(model.metadata)});
  }
  const auto bytes = std::filesystem::file_size(path);
  if (c.json)
    print_json({{"model", c.model}, {"file", path}, {"bytes", bytes}});
  else
    fmt::print("{}: {} bytes\n", path, bytes);
  return 0;
}

}  // namespace kiln::driver
