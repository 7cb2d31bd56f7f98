#pragma once
#include "kiln/op/quant/quantize_linear.hpp"

namespace kiln::op {

/// The real values that numbers stand for: (x - zero point) * scale (ONNX DequantizeLinear). Inputs: x of an integer
/// type of at most 16 bits, i32, or a float of eight bits; a scale of f32 that is a number or a vector along `axis`;
/// and a zero point of x's type with the scale's dims; without one it is 0. The pass expand_quantization writes it as
/// pointwise ops; it is in no registry.
struct dequantize_linear {
  std::int64_t axis = 1;
  static constexpr auto types = dtype_set{1u << static_cast<unsigned>(dtype::f32)};
  static constexpr int typed_input = 1;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::scale_fault(in, axis)) return *f;
    if (!detail::is_scaled_type(in[0].type) && in[0].type != dtype::i32)
      return fault::of(errc::unsupported, "dtype that is dequantized",
                       "an integer of at most 16 bits, i32, or a float of eight", in[0].type);
    if (in[1].type != dtype::f32) return fault::of(errc::unsupported, "dtype of scales", dtype::f32, in[1].type);
    if (in.size() == 3 && in[2].type != in[0].type)
      return fault::of(errc::shape_mismatch, "dtype of the zero point", in[0].type, in[2].type);
    return shape{dtype::f32, in[0].lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    // i32 less its zero point may be no f32: the difference is taken in integers
    is_float(e.in_shape(0).type) ? scaled<T, T>(e) : scaled<T, std::int64_t>(e);
  }

 private:
  template <class T, class Stored> constexpr void scaled(Evaluation auto& e) const {
    const auto x = e.template in<Stored>(0), zero = e.template in<Stored>(e.inputs() == 3 ? 2 : 0);
    const auto scale = e.template in<T>(1);
    const auto out = e.template out<T>();
    const detail::scale_index at(x.lens, scale.rank(), axis);
    for (std::int64_t k = 0, n = x.size(); k < n; ++k)
      out[k] = static_cast<T>(x[k] - (e.has(2) ? zero[at(k)] : Stored(0))) * scale[at(k)];
  }
};

}  // namespace kiln::op
