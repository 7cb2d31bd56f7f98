#pragma once
#include "kiln/runtime/executable.hpp"

namespace kiln {

/// One line a step: kernel, operands, results, instruction.
std::string plan_text(const compile_report& r);

/// What the passes did, remarks, numbers of kernels, bytes of constants, times.
std::string report_text(const compile_report& r);

/// The whole report as one JSON object: target, passes, remarks, steps, constant_bytes, packed_bytes, packed (bytes by
/// kernel), optimize_ms, plan_ms. Text that is not UTF-8 is made so.
std::string report_json(const compile_report& r);

}  // namespace kiln
