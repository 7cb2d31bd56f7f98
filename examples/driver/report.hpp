#pragma once
#include <string>

#include "json.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::driver {

/// The program as text, one instruction a line.
std::string graph_text(const program& p);
/// One line a step: kernel, operands, results, instruction.
std::string plan_text(const compile_report& r);
/// What the passes did, constants, packed bytes, remarks, times.
std::string report_text(const compile_report& r);

/// Bytes of constants that kernels hold in their own form, by kernel.
json packed_json(const compile_report& r);
json plan_json(const compile_report& r);
json passes_json(const compile_report& r);

}  // namespace kiln::driver
