#pragma once
#include "kiln/op/arithmetic.hpp"
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// Running sum along `axis` (ONNX CumSum): of the elements up to and with each one, or without it when `exclusive`;
/// from the end when `reverse`. Integers wrap.
struct cumsum {
  std::int64_t axis = 0;
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto types = dtypes::numbers | dtypes::dims;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::axis_fault(in, axis, types)) return *f;
    return shape{in[0].type, in[0].lens};
  }

  template <class T>
  constexpr void compute(Evaluation auto& e) const {
    using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
    const auto in = e.template in<T>(0);
    const auto out = e.template out<T>();
    const auto s = detail::split_at(in.lens, axis);
    for (std::int64_t o = 0; o < s.outer; ++o)
      for (std::int64_t i = 0; i < s.inner; ++i) {
        Sum sum = Sum(0);
        for (std::int64_t k = 0; k < s.extent; ++k) {
          const std::int64_t at = (o * s.extent + (reverse ? s.extent - 1 - k : k)) * s.inner + i;
          const Sum next = detail::wrapping_add(sum, static_cast<Sum>(in[at]));
          out[at] = static_cast<T>(exclusive ? sum : next);
          sum = next;
        }
      }
  }
};

}  // namespace kiln::op
