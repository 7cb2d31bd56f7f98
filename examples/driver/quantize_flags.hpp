#pragma once
#include <CLI/CLI.hpp>

#include "options.hpp"

namespace kiln::driver {

/// Adds what static and dynamic quantization have to say. What means nothing to a precision, the library refuses.
void add_static_flags(CLI::App& verb, quantize_command& q);

}  // namespace kiln::driver
