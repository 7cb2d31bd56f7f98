#pragma once
#include <string>

#include "json.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::driver {

/// The program as text, one instruction a line.
std::string graph_text(const program& p);
/// The compile report as `report_json` writes it.
json report_object(const compile_report& r);

}  // namespace kiln::driver
