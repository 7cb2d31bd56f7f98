#pragma once
// The umbrella: an include list, nothing else. Importer and targets have headers of their own.
#include "kiln/core/argument.hpp"
#include "kiln/core/dimension.hpp"
#include "kiln/core/error.hpp"
#include "kiln/core/shape.hpp"
#include "kiln/graph/builder.hpp"
#include "kiln/op/ops.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/version.hpp"
