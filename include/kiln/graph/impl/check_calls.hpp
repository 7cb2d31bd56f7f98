#pragma once
#include "kiln/graph/program_archive.hpp"

namespace kiln::detail {

/// Whether the bodies that a program from a file calls are its own, fit their calls, and end: no module calls itself,
/// and neither depth nor size of the program written out without calls exceeds what compilation is made for. Anything
/// else is a `malformed` error of `from`.
void check_calls(const program& p, const archive_reader& from);

}  // namespace kiln::detail
