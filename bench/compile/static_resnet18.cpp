#include "bench/compile/nets.hpp"
#include "kiln/static_program/static_program.hpp"

using program = kiln::static_program<nets::resnet18>;

static program instance;

const float* run(program::input_span<0> x) { return instance(x).data(); }
