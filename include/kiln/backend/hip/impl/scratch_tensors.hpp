#pragma once
#include "kiln/runtime/kernel.hpp"

// Tensors that kernels put aside in scratch memory.

namespace kiln::hip {

/// Bytes that so many elements take there: a multiple of what the addresses of its parts are aligned to.
inline std::size_t scratch_room(std::int64_t elements, dtype type) {
  constexpr std::size_t aligned = 256;
  return (static_cast<std::size_t>(elements) * size_of(type) + aligned - 1) / aligned * aligned;
}

/// Steps of dense images of these extents, [images, channels, spatial...], whose channels lie last.
inline ints channels_last_steps(const ints& lens) {
  ints steps(lens.size(), 1);
  std::int64_t step = lens[1];
  for (std::size_t d = lens.size(); d-- > 2;) steps[d] = step, step *= lens[d];
  steps[0] = step;
  return steps;
}

}  // namespace kiln::hip
