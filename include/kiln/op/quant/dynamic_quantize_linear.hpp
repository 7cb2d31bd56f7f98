#pragma once
#include "kiln/op/quant/quantize_linear.hpp"

namespace kiln::op {

/// Real values as u8 by their own range, which is widened to hold 0 (ONNX DynamicQuantizeLinear). Input: x of f32.
/// Results: the numbers, u8 with x's dims; the scale, one f32, which is 1 where all values are 0; the zero point, one
/// u8. The pass expand_quantization writes it as reductions and pointwise ops for targets that have no kernel for it;
/// it is in no registry.
struct dynamic_quantize_linear {
  static constexpr auto types = dtype_set{1u << static_cast<unsigned>(dtype::f32)};

  constexpr result<shapes> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return detail::wrong_operand_count(1, in.size());
    if (in[0].type != dtype::f32) return fault::of(errc::unsupported, "dtype of values", dtype::f32, in[0].type);
    shapes out;
    out.push_back(shape{dtype::u8, in[0].lens});
    out.push_back(shape{dtype::f32, {}});
    out.push_back(shape{dtype::u8, {}});
    return out;
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto x = e.template in<T>(0);
    const auto numbers = e.template out<T>(0), scales = e.template out<T>(1), zeros = e.template out<T>(2);
    const std::int64_t n = x.size();
    T low = 0, high = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      if (x[k] < low) low = x[k];
      if (x[k] > high) high = x[k];
    }
    const T range = (high - low) / T(255), scale = range == T(0) ? T(1) : range;
    const T zero = clip{}(round{}(-low / scale), T(0), T(255));
    for (std::int64_t k = 0; k < n; ++k) numbers[k] = clip{}(round{}(x[k] / scale) + zero, T(0), T(255));
    scales[0] = scale;
    zeros[0] = zero;
  }
};

}  // namespace kiln::op
