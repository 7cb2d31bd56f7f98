#pragma once
#include <map>
#include <string>
#include <string_view>

#include "kiln/quantize/int8.hpp"

namespace kiln::quantize {

/// What stands in for the options of all for some values (`int8_options::overrides`).
using value_overrides = std::map<std::string, value_override>;

/// Reads a JSON object of value names, each with an object of "type", "symmetric", "reduced", "low", "high", "scale"
/// and "zero". Empty text: none. `invalid_argument` errors name the place, the value and the key.
value_overrides parse_overrides(std::string_view json, const std::string& place);

/// The text that `parse_overrides` takes; empty for none.
std::string overrides_text(const value_overrides& all);

}  // namespace kiln::quantize
