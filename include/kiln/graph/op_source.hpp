#pragma once
#include "kiln/core/trace.hpp"
#include "kiln/graph/operation.hpp"

/// Source text of ops, for every target that generates code.
namespace kiln {

/// A part of an op as source over named values of `type`, the first `conditions` of which are conditions.
source_text print_op(const operation& op, trace_part part, dtype type, const std::vector<std::string>& names,
                     std::size_t conditions, const dialect& how);

/// What a reduction of `type` begins with or, `finished`, gives over nothing.
expr start_of(const operation& op, dtype type, bool finished = false);

/// What makes a computed value the one that a result holds: i32 wraps though it is computed in 64 bits, a converted
/// float is clamped, and a condition is not 0.
enum class narrowing : std::uint8_t { none, stored, not_zero };
narrowing narrowing_of(const op_info& op, dtype from, dtype to);
/// Of a reduction's result.
narrowing narrowing_of(dtype sum);

}  // namespace kiln
