#pragma once
#include "kiln/op/ops.hpp"

namespace kiln::detail {

/// Ops whose tables one translation unit holds: small units keep memory and rebuilds small.
inline constexpr std::size_t ops_in_slice = 16;

/// The tables of one slice: an array of `ops_in_slice`, fewer in the last one, null past the end.
template <std::size_t Slice> struct op_table_slice { static const op_table* tables(); };

}  // namespace kiln::detail
