#pragma once
#include <string>

namespace kiln::detail {

/// The build id (a hash that the linker makes of all its content) of the program or shared library that holds a
/// function, as bytes; empty where it was linked without one.
std::string build_id_of(const void* function);

}  // namespace kiln::detail
