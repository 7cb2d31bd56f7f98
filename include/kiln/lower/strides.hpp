#pragma once
#include "kiln/lower/layout.hpp"

namespace kiln::lower {

/// Which layouts a kernel reads or writes at one operand.
enum class stride_support : std::uint8_t {
  dense,                 ///< row-major without gaps
  nchw_or_nhwc,          ///< that, or NHWC (`lower::is_nhwc`)
  strided_nchw_or_nhwc,  ///< that, or NCHW with gaps between images (a part of a concatenation of channels)
  rows,                  ///< any outer strides, the last dim contiguous
  any,                   ///< any strides, 0 and negative ones included
};

/// Whether the dims from `first` on are row-major without gaps.
constexpr bool dense_from(const layout& where, std::size_t first) {
  layout inner;
  for (std::size_t d = first; d < where.lens.size(); ++d)
    inner.lens.push_back(where.lens[d]), inner.strides.push_back(where.strides[d]);
  return inner.dense();
}

/// Whether a kernel with that support may be given the layout.
constexpr bool accepts(stride_support support, const layout& where) {
  if (support == stride_support::any) return true;
  if (support == stride_support::dense) return where.dense();
  if (support == stride_support::nchw_or_nhwc) return where.dense() || is_nhwc(where);
  if (support == stride_support::strided_nchw_or_nhwc) return is_nhwc(where) || dense_from(where, 1);
  return where.lens.empty() || where.lens.back() == dimension(1) || where.strides.back() == dimension(1);
}

/// Elements of the buffer that a layout reaches: repeats count once.
constexpr dimension distinct_elements(const layout& l) {
  dimension n = 1;
  for (std::size_t d = 0; d < l.lens.size(); ++d)
    if (!(l.strides[d] == dimension(0))) n *= l.lens[d];
  return n;
}

}  // namespace kiln::lower
