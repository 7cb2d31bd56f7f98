#include "kiln/graph/print.hpp"

namespace kiln {

text print(const program& p) { return detail::print_program(p); }

}  // namespace kiln
