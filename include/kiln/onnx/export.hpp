#pragma once
#include <string>
#include <utility>
#include <vector>

#include "kiln/graph/module.hpp"

namespace kiln::onnx {

/// What an exported model says beside its graph.
struct export_options {
  /// Pairs for the model's metadata_props, as `imported::metadata` has them.
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// The bytes of an ONNX model that computes what the program computes: ai.onnx 20, or the first operator set that has
/// its element types and operators; symbols are named dims. Errors: `unsupported` lists every op that ONNX has no
/// operators for; `limit` beyond the 2 GiB of a message.
std::string export_model(const program& p, const export_options& options = {});

/// Writes the model to a file; an existing file is replaced only by a whole one. Errors: as above, and `io`.
void write_model(const std::string& path, const program& p, const export_options& options = {});

}  // namespace kiln::onnx
