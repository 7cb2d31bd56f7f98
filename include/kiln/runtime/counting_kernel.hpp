#pragma once
#include "kiln/runtime/kernel.hpp"

namespace kiln {

/// What a kernel of a target with a device is, besides, where it finds how large its result is: a run gives the queue
/// `count`, reads the number, and gives it `kernel::run` with a result of that size and the same scratch memory.
class counting_kernel {
 public:
  virtual ~counting_kernel() = default;
  /// Gives the queue work that writes how many there are, an i64, to the beginning of scratch memory; `l.out` is empty.
  virtual void count(const launch& l) const = 0;
  /// The result's shape. Errors as the op's own computation has.
  virtual shape made(std::span<const tensor> in, std::int64_t count) const = 0;
};

}  // namespace kiln
