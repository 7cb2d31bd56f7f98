#pragma once
#include <string>
#include <utility>
#include <vector>

#include "kiln/graph/module.hpp"

namespace kiln::onnx {

/// What an exported model has besides its graph.
struct export_options {
  /// The model's metadata_props, as in `imported::metadata`.
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// A program as the bytes of an ONNX model, of ai.onnx 20 or the first operator set that has its element types and
/// operators. Symbols become named dims. Errors: `unsupported` lists every op that ONNX has no operators for; `limit`
/// beyond 2 GiB.
std::string export_model(const program& p, const export_options& options = {});

/// Writes the model to a file; one that exists is replaced by the whole new one. Errors: as above, and `io`.
void write_model(const std::string& path, const program& p, const export_options& options = {});

}  // namespace kiln::onnx
