#pragma once

#include "kiln/kernel/int8/requantize.hpp"

namespace kiln::kernels {

/// What bytes become with the bytes beside them: `how` of (byte - zero), whose columns are all alike: its scale and
/// biases have as many elements as a block. Addends and results are adjacent.
struct byte_combination {
  static constexpr std::int64_t most = 64;  ///< elements of any level's block
  requantization how;
  bool is_signed = false;
  std::int32_t zero = 0;
};

}  // namespace kiln::kernels
