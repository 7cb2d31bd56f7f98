#pragma once
#include <cstddef>

namespace kiln {

/// What a kernel is, too, that moves elements of some operands as bytes: a constant that only such kernels read stays
/// where it is, in a mapped file for one, at whatever address. Others get it at one that its elements' size divides.
class byte_reader {
 public:
  virtual bool reads_bytes_of(std::size_t operand) const = 0;

 protected:
  ~byte_reader() = default;
};

}  // namespace kiln
