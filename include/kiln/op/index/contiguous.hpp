#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// A row-major copy of the operand: what a view needs before it where strides forbid it.
struct contiguous {
  static constexpr auto types = dtypes::movable | dtypes::dims;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return detail::wrong_operand_count(1, in.size());
    return shape{in[0].type, in[0].lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto in = e.template in<T>(0);
    const auto out = e.template out<T>();
    for (std::int64_t k = 0, n = out.size(); k < n; ++k) out[k] = in[k];
  }
};

}  // namespace kiln::op
