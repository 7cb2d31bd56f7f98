#pragma once
#include "kiln/op/index/arg_extreme.hpp"

namespace kiln::op {

/// Index (i64) of the least element along `axis`, whose extent becomes 1 (ONNX ArgMin): the first of equals, or the
/// last with `select_last_index`. A NaN counts as the least, as in numpy.
struct arg_min {
  std::int64_t axis = 0;
  bool select_last_index = false;
  static constexpr auto types = dtypes::numbers;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    return detail::arg_extreme_shape(in, axis, types);
  }
  template <class T> constexpr void compute(Evaluation auto& e) const {
    detail::arg_extreme<T>(e, axis, select_last_index, [](T x, T y) { return x < y; });
  }
};

}  // namespace kiln::op
