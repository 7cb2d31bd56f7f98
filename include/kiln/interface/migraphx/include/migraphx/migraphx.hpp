#pragma once
#include <migraphx/api/custom_op.hpp>
#include <migraphx/api/models.hpp>

// MIGraphX's classes for C++14 and later over its interface for C. A call that fails throws std::runtime_error with
// what kiln_last_error() says.
