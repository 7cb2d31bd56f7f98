#include "report.hpp"

#include "kiln/graph/print.hpp"
#include "kiln/runtime/report.hpp"

namespace kiln::driver {

std::string graph_text(const program& p) { return print(p).str(); }

json report_object(const compile_report& r) { return json::parse(report_json(r)); }

}  // namespace kiln::driver
