#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// A tensor without operands whose elements all are `value`, rounded to the dtype (ONNX ConstantOfShape).
struct fill {
  dims lens{};
  double value = 0;
  dtype type = dtype::f32;
  static constexpr auto types = dtypes::convertible;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (!in.empty()) return detail::wrong_operand_count(0, in.size());
    if (!types.contains(type)) return fault::of(errc::unsupported, "dtype of the result", "a number or bool", type);
    return shape{type, lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto out = e.template out<T>();
    const T v = convert_value<T>(value);
    for (std::int64_t k = 0, n = out.size(); k < n; ++k) out[k] = v;
  }
};

}  // namespace kiln::op
