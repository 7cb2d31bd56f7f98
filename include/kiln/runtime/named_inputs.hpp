#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "kiln/runtime/executable.hpp"

namespace kiln {

/// An input's name and its value.
struct named_input {
  std::string_view name;
  argument value;
};

/// The values in the order of the executable's inputs. A missing input, or one given twice, is an `invalid_argument`
/// error, an unknown name `not_found`.
std::vector<argument> ordered_inputs(const executable& exe, std::span<const named_input> inputs);

/// The index of a named output; a `not_found` error lists the names there are.
std::size_t output_index(const executable& exe, std::string_view name);

}  // namespace kiln
