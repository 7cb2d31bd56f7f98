#pragma once
#include "kiln/op/index/common.hpp"
#include "kiln/op/pointwise/clip.hpp"
#include "kiln/op/pointwise/round.hpp"
#include "kiln/op/quant/range.hpp"

namespace kiln::detail {

/// The faults of a scale (and a zero point) of a tensor: one number, or one for each index along `axis`.
constexpr std::optional<fault> scale_fault(std::span<const shape> in, std::int64_t axis) {
  if (in.size() != 2 && in.size() != 3) return wrong_operand_count(2, in.size());
  const shape &x = in[0], &scale = in[1];
  if (scale.rank() > 1) return fault::of(errc::shape_mismatch, "a scale is a number or a vector", 1, scale.rank());
  if (scale.rank() == 1) {
    const std::int64_t a = normal_axis(axis, x.rank());
    if (a < 0) return wrong_axis(x.rank(), axis);
    if (!(scale.lens[0] == x.lens[static_cast<std::size_t>(a)]))
      return fault::of(errc::shape_mismatch, "a scale for each index along the axis",
                       x.lens[static_cast<std::size_t>(a)], scale.lens[0]);
  }
  if (in.size() == 3 && !(in[2].lens == scale.lens))
    return fault::of(errc::shape_mismatch, "zero points have the scale's dims", scale.lens, in[2].lens);
  return std::nullopt;
}

/// Whether values are stored in a type by linear quantization: integers of at most 16 bits.
constexpr bool is_quantized_type(dtype t) { return is_integer(t) && bits_of(t) <= 16; }

/// Whether values are stored in a type by scales: such integers, or floats of eight bits.
constexpr bool is_scaled_type(dtype t) { return is_quantized_type(t) || quantize::is_float8(t); }

/// The least and the greatest value of a scaled type.
struct real_bounds {
  double low, high;
};

/// The least and the greatest value of such an integer type.
struct integer_bounds {
  std::int64_t low, high;
};
constexpr integer_bounds bounds_of_integer(dtype t) {
  const std::int64_t count = std::int64_t{1} << bits_of(t);
  return is_signed_integer(t) ? integer_bounds{-count / 2, count / 2 - 1} : integer_bounds{0, count - 1};
}

constexpr real_bounds bounds_of_scaled(dtype t) {
  if (quantize::is_float8(t)) return {-quantize::greatest_float8(t), quantize::greatest_float8(t)};
  const auto [low, high] = bounds_of_integer(t);
  return {static_cast<double>(low), static_cast<double>(high)};
}

/// The scale that belongs to each element.
struct scale_index {
  axis_split split;
  bool is_vector = false;
  constexpr scale_index(const ints& lens, std::size_t scale_rank, std::int64_t axis) : is_vector(scale_rank == 1) {
    if (is_vector) split = split_at(lens, axis);
  }
  constexpr std::int64_t operator()(std::int64_t k) const { return is_vector ? k / split.inner % split.extent : 0; }
};

}  // namespace kiln::detail

namespace kiln::op {

/// Real values as integers of `type`: x / scale, rounded half to even, plus the zero point, saturated (ONNX
/// QuantizeLinear); or as floats of eight bits, in which case the nearest one is taken, NaN stays NaN, and nothing
/// becomes infinite. Inputs: x of f32, a scale of f32 that is a number or a vector along `axis`, and a zero point of
/// `type` with the scale's dims; without one it is 0. The pass expand_quantization writes it as pointwise ops; it is in
/// no registry.
struct quantize_linear {
  dtype type = dtype::u8;
  std::int64_t axis = 1;
  static constexpr auto types = dtype_set{1u << static_cast<unsigned>(dtype::f32)};

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::scale_fault(in, axis)) return *f;
    if (in[0].type != dtype::f32 || in[1].type != dtype::f32)
      return fault::of(errc::unsupported, "dtype of values and scales", dtype::f32,
                       in[0].type == dtype::f32 ? in[1].type : in[0].type);
    if (!detail::is_scaled_type(type))
      return fault::of(errc::unsupported, "dtype that is quantized to",
                       "an integer of at most 16 bits, or a float of eight", type);
    if (in.size() == 3 && in[2].type != type)
      return fault::of(errc::shape_mismatch, "dtype of the zero point", type, in[2].type);
    return shape{type, in[0].lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto x = e.template in<T>(0), scale = e.template in<T>(1), zero = e.template in<T>(e.inputs() - 1);
    const auto out = e.template out<T>();
    const detail::scale_index at(x.lens, scale.rank(), axis);
    const auto [low, high] = detail::bounds_of_scaled(type);
    for (std::int64_t k = 0, n = x.size(); k < n; ++k) {
      const T ratio = x[k] / scale[at(k)];  // storing a float rounds it
      const T y = (is_float(type) ? ratio : round{}(ratio)) + (e.has(2) ? zero[at(k)] : T(0));
      out[k] = clip{}(y, static_cast<T>(low), static_cast<T>(high));
    }
  }
};

}  // namespace kiln::op
