#pragma once

namespace kiln::onnxruntime {

/// Puts the shim's functions into a copy of ONNX Runtime's table: those that make and release environments, list
/// providers and append one. All others stay ONNX Runtime's.
void replace(const void** table);

}  // namespace kiln::onnxruntime
