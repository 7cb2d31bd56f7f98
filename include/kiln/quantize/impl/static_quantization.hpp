#pragma once
#include "kiln/quantize/int8.hpp"

namespace kiln::quantize::detail {

/// `to_int8` without its checks of types: floats of eight bits, too.
quantized_program quantize_statically(program p, const ranges& known, const int8_options& options);

}  // namespace kiln::quantize::detail
