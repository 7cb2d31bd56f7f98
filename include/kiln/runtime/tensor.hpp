#pragma once
#include "kiln/core/argument.hpp"

namespace kiln {

/// A tensor as a kernel sees it: numbers only. Strides are in elements; 0 repeats, negative reverses.
struct tensor {
  std::byte* data = nullptr;
  dtype type = dtype::f32;
  ints lens;
  ints strides;

  std::int64_t elements() const { return product(lens); }
  std::size_t rank() const { return lens.size(); }
  /// Row-major without gaps (strides of extents 1 do not matter).
  bool dense() const {
    std::int64_t step = 1;
    for (std::size_t i = lens.size(); i-- > 0;) {
      if (lens[i] == 1) continue;
      if (strides[i] != step) return false;
      step *= lens[i];
    }
    return true;
  }
  template <class T> T* as() const { return reinterpret_cast<T*>(data); }
};

/// The elements of an argument where they are. Kernels only read their inputs.
inline tensor tensor_of(const argument& a) {
  const shape& s = a.get_shape();
  return {const_cast<std::byte*>(a.data()), s.type, to_ints(s.lens), to_ints(s.element_strides())};
}

}  // namespace kiln
