#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::kernels {

/// Two operands of a pointwise op and its result, row by row: elements of a row lie side by side, but for those of a
/// second operand that repeats one element along each row.
struct row_pairs {
  const void* op = nullptr;  ///< attributes
  const std::byte *a = nullptr, *b = nullptr;
  std::byte* to = nullptr;  ///< may be where an operand is, element by element
  std::int64_t rows = 0;
  std::int64_t row = 0;                              ///< elements of one, at least 64 bytes of an operand
  std::int64_t a_step = 0, b_step = 0, to_step = 0;  ///< bytes from one row to the next
  bool repeats = false;                              ///< whether `b` has one element per row
  bool swapped = false;                              ///< whether such a `b` is the op's first operand
  bool past_cache = false;                           ///< whether results bypass the caches where they can
  std::int64_t ahead = 0;                            ///< bytes by which operands are prefetched ahead; 0: they are not
};

}  // namespace kiln::kernels
