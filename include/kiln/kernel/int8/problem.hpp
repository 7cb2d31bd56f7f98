#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::kernels {

/// A GEMM of 8-bit integers, operands in the form of a machine (int8/tile.hpp).
struct integer_problem {
  std::int64_t m = 0, n = 0, k = 0;
  const std::byte* a = nullptr;  ///< rows of whole lanes; elements after k are unspecified
  std::ptrdiff_t a_row = 0;      ///< bytes
  const std::int32_t* b = nullptr;
  const std::int32_t* shift = nullptr;  ///< added to each column's sums, as many as whole vectors; or null
  const std::int32_t* less = nullptr;   ///< subtracted from the sums of row `row % less_rows`, or null
  std::ptrdiff_t less_row = 0;          ///< its row stride
  std::int64_t less_rows = 1;
};

/// The layout of an 8-bit image; strides in bytes.
struct byte_image {
  const std::byte* at = nullptr;
  std::ptrdiff_t batch = 0, channel = 0, axis[3] = {};
  bool is_signed = false;
  std::int32_t outside = 0;  ///< the value of padding
};

}  // namespace kiln::kernels
