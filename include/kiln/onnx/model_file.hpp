#pragma once
#include <string>

#include "kiln/onnx/node.hpp"

namespace kiln::onnx {

/// A model of nodes as the bytes of an ONNX model, with the operator sets that its nodes are of. A tensor that has a
/// fault instead of a value is written without elements, and says the fault as its doc_string; so are attributes of
/// kind `other` without a value. Errors: `unsupported` for model-local functions; `limit` beyond 2 GiB.
std::string model_bytes(const model& m);

/// Writes the model to a file; one that exists is replaced by the whole new one. Errors: as above, and `io`.
void write_model(const std::string& path, const model& m);

}  // namespace kiln::onnx
