#pragma once
#include <functional>
#include <vector>

#include "kiln/graph/builder.hpp"

namespace kiln::testing {

/// A program's random inputs and what the ops' own computations make of them, all of them f32. `change` sees the inputs
/// first.
struct reference_values {
  std::vector<std::vector<float>> in;
  std::vector<std::vector<double>> out;
};
reference_values reference_of(const std::function<void(builder&)>& make,
                              const std::function<void(std::vector<std::vector<float>>&)>& change = {});

}  // namespace kiln::testing
