#pragma once

// The scalar functions that op bodies are written with: one template text each, for a constexpr scalar, a vector of
// core/simd.hpp, a device scalar, or a type that records calls (core/trace.hpp). Freestanding.

#include "kiln/core/math/arc.hpp"
#include "kiln/core/math/basic.hpp"
#include "kiln/core/math/erf.hpp"
#include "kiln/core/math/exp.hpp"
#include "kiln/core/math/hyperbolic.hpp"
#include "kiln/core/math/log.hpp"
#include "kiln/core/math/pow.hpp"
#include "kiln/core/math/remainder.hpp"
#include "kiln/core/math/root.hpp"
#include "kiln/core/math/select.hpp"
#include "kiln/core/math/trig.hpp"
#include "kiln/core/math/types.hpp"
#include "kiln/core/math/values.hpp"
