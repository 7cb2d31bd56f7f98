#pragma once
#include <optional>

#include "kiln/onnx/node.hpp"

namespace kiln::onnx {

/// The batch of a graph whose extents are open: the first extent of the input `input`, and every extent of that name.
struct open_batch {
  std::string input, name;  ///< the name may be empty
};

/// The batch of the first input whose first extent is open; none where no input has one.
std::optional<open_batch> batch_of(const graph& g);

/// Sets the batch in the graph's declared inputs and outputs.
void fix_batch(graph& g, const open_batch& open, std::int64_t batch);

/// "rows = 4", in words for listings.
std::string to_string(const open_batch& open, std::int64_t batch);

}  // namespace kiln::onnx
