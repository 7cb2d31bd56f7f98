#pragma once
#include "kiln/interface/migraphx/program.hpp"

namespace kiln::migraphx {

/// Parameters and results in 8-bit floats become f32, converted within the program. A program that is compiled is an
/// `invalid_argument` error.
void autocast_fp8(program& p);

}  // namespace kiln::migraphx
