#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::kernels {

/// One filter of a transposed convolution: what each input element adds at each tap is a column of products, and the
/// columns are added to where they reach (col2im). Missing spatial dims have extent 1.
struct column_problem {
  std::int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
               dilation[3] = {1, 1, 1}, begin[3] = {};
  const float* columns = nullptr;  ///< of input rows [row, row + rows) of all planes, by tap
  std::ptrdiff_t step = 0;         ///< elements from a tap's column to the next one's
  const float* weights = nullptr;  ///< by tap, times which the columns are added; or null
  std::int64_t row = 0, rows = 0;
  float* y = nullptr;  ///< the filter's result; rows of it that earlier columns reached are added to, others written

  constexpr std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  /// The output index along a dim that a tap of an input element adds to.
  constexpr std::int64_t reached(int dim, std::int64_t element, std::int64_t tap) const {
    return element * stride[dim] + tap * dilation[dim] - begin[dim];
  }
};

}  // namespace kiln::kernels
