#include "kiln/onnx/batch.hpp"

namespace kiln::onnx {

std::optional<open_batch> batch_of(const graph& g) {
  for (const value_info& v : g.inputs)
    if (v.has_rank && !v.dims.empty() && v.dims[0].value < 0) return open_batch{v.name, v.dims[0].name};
  return {};
}

void fix_batch(graph& g, const open_batch& open, std::int64_t batch) {
  for (auto* list : {&g.inputs, &g.outputs})
    for (value_info& v : *list)
      for (std::size_t d = 0; d < v.dims.size(); ++d) {
        const bool is_it = open.name.empty() ? v.name == open.input && d == 0 : v.dims[d].name == open.name;
        if (is_it) v.dims[d] = {batch, ""};
      }
}

std::string to_string(const open_batch& open, std::int64_t batch) {
  return (open.name.empty() ? "batch of " + open.input : open.name) + " = " + std::to_string(batch);
}

}  // namespace kiln::onnx
