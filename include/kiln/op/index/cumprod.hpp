#pragma once
#include "kiln/op/index/running.hpp"

namespace kiln::op {

/// Running product along `axis` (ONNX CumProd): of the elements up to and with each one, or without it when
/// `exclusive`; from the end when `reverse`. Integers wrap.
struct cumprod {
  std::int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto types = dtypes::numbers;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::axis_fault(in, axis, types)) return *f;
    return shape{in[0].type, in[0].lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    detail::running<T>(e, axis, exclusive, reverse, 1, [](auto x, auto y) { return detail::wrapping_mul(x, y); });
  }
};

}  // namespace kiln::op
