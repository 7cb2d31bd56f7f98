#pragma once
#include <map>
#include <string>

#include "kiln/quantize/int8.hpp"

namespace kiln::driver {

/// Reads --overrides: a JSON object of value names, each with an object of "type", "symmetric", "reduced", "low",
/// "high", "scale" and "zero". Errors name the file, the value and the key.
std::map<std::string, quantize::value_override> read_overrides(const std::string& file);

}  // namespace kiln::driver
