#pragma once
#include <nlohmann/json.hpp>
#include <span>

#include "kiln/runtime/executable.hpp"

namespace kiln::driver {

/// JSON whose keys keep the order they were written in.
using json = nlohmann::ordered_json;

/// The extents: numbers, and symbolic ones as text.
json json_of(const dims& lens);
/// `{"type": "f32", "dims": [1, 3]}`.
json json_of(const shape& s);
/// Name, type and dims of each port.
json json_of(std::span<const port> ports);
/// A number, or null where JSON has none (infinities, NaN).
json json_of(double value);

/// Prints the object as the only thing on standard output. Text that is no UTF-8 is replaced. Errors: `io`.
void print_json(const json& object);

/// Sees that what was printed has reached standard output. Errors: `io`.
void end_output();

}  // namespace kiln::driver
