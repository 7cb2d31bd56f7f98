#pragma once
#include "kiln/core/layout.hpp"

namespace kiln::lower {

/// No buffer, instruction, step or output.
inline constexpr std::uint32_t none = 0xffff'ffff;

/// What a buffer is: of the arena, of the caller, a constant of the program, a constant that mentions symbols, or a
/// weight in the form that a step reads.
enum class memory : std::uint8_t { arena, input, output, weight, constant, symbolic, prepared };

/// A piece of memory that lives from one step to another.
struct buffer {
  memory kind = memory::arena;
  std::uint32_t index = 0;               ///< which input, output, weight or constant
  dimension bytes = 0;                   ///< of an arena's buffer
  std::int64_t offset = 0;               ///< in bytes, where a plan of constant sizes says it
  std::uint32_t first = none, last = 0;  ///< steps that touch it; first is `none` where no step does
};

/// Where a value is: a buffer and the value's layout in it.
struct placement {
  std::uint32_t buffer = none;
  layout where;
  friend constexpr bool operator==(const placement&, const placement&) = default;
};

}  // namespace kiln::lower
