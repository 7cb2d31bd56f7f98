#pragma once
#include <string>

#include "kiln/interface/onnxruntime/abi.hpp"

namespace kiln::onnxruntime {

/// A table for programs without an ONNX Runtime: functions of statuses work, all others answer with a status of
/// `message`, and those that return a text or a table with an empty text or null. The first message stays.
const void* const* absent_table(const std::string& message);

}  // namespace kiln::onnxruntime
