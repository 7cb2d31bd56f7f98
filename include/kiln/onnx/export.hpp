#pragma once
#include <string>

#include "kiln/graph/module.hpp"

namespace kiln::onnx {

/// The bytes of an ONNX model that computes what the program computes: ai.onnx 20, symbols as named dims. Errors:
/// `unsupported` lists every op that ONNX has no operators for; `limit` beyond the 2 GiB of a message.
std::string export_model(const program& p);

/// Writes the model to a file; an existing file is replaced only by a whole one. Errors: as above, and `io`.
void write_model(const std::string& path, const program& p);

}  // namespace kiln::onnx
