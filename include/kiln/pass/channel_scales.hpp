#pragma once
#include "kiln/core/math.hpp"
#include "kiln/graph/literal_values.hpp"
#include "kiln/op/quant/quantize_linear.hpp"

namespace kiln {

/// How constant weights are quantized, by their range.
struct weight_quantization {
  dtype type = dtype::i8;    ///< an integer of at most 16 bits, or a float of eight
  bool per_channel = true;   ///< a scale for each output channel, else one for the tensor
  bool reduced = false;      ///< half the codes, for processors whose products of bytes saturate
  bool symmetric = true;     ///< 0 stands in the middle of the codes
  double least_width = 0;    ///< ranges are widened to this at least
  bool from_floats = false;  ///< weights stay floats that the program itself quantizes, for tools that train them
};

namespace detail {

/// A scale and a zero point for each channel of weights, from its range: `scale[0]` alone, not per channel.
struct channel_scales {
  axis_split split;
  weight_quantization how;
  bool finite = true;
  real_bounds codes{};
  small_vector<float> scale;
  small_vector<std::int64_t> zero;

  constexpr channel_scales(const literal& l, std::int64_t axis, const weight_quantization& as) : how(as) {
    split = split_at(to_ints(l.get_shape().lens), axis);
    if (!how.per_channel) split = {1, 1, l.elements()};
    const quantize::scheme codes_used{how.type, how.symmetric, how.reduced, how.least_width};
    codes = bounds_of_scaled(how.type);
    if (const auto used = quantize::codes_of(codes_used))
      codes = {static_cast<double>(used->low), static_cast<double>(used->high)};
    small_vector<quantize::range> ranges(static_cast<std::size_t>(split.extent));
    std::int64_t k = 0;
    visit_elements(l, l.elements(), [&](const auto& value) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, float>) {
        quantize::range& r = ranges[channel(k++)];
        finite = finite && value - value == 0;
        if (value < r.low) r.low = value;
        if (value > r.high) r.high = value;
      }
    });
    if (!finite) return;
    for (const quantize::range& r : ranges) {
      const auto found = *quantize::parameters_for(r, codes_used);
      scale.push_back(found.scale);
      zero.push_back(found.zero_point);
    }
  }
  constexpr std::size_t channel(std::int64_t k) const {
    return static_cast<std::size_t>(k / split.inner % split.extent);
  }
  constexpr bool is_shifted() const {
    for (const std::int64_t z : zero)
      if (z != 0) return true;
    return false;
  }
  constexpr literal integers(const literal& l) const {
    small_vector<float> values = l.template to<float>();
    const auto low = static_cast<float>(codes.low), high = static_cast<float>(codes.high);
    std::int64_t k = 0;
    for (float& x : values) {
      const std::size_t c = channel(k++);
      const float ratio = x / scale[c];  // a literal of floats rounds it
      const float y = is_float(how.type) ? ratio : kiln::round(ratio) + static_cast<float>(zero[c]);
      x = y < low ? low : y > high ? high : y;  // a scale that is no normal number divides inexactly
    }
    return literal::of<float>(shape{how.type, l.get_shape().lens}, values);
  }
  constexpr bool is_one() const { return scale.size() == 1 && !how.per_channel; }
  constexpr literal scales() const {
    if (is_one()) return literal::scalar(dtype::f32, scale[0]);
    return literal::of<float>(shape{dtype::f32, {dimension(scale.size())}}, scale);
  }
  constexpr literal zeros() const {
    if (is_one()) return literal::scalar(how.type, zero[0]);
    return literal::of<std::int64_t>(shape{how.type, {dimension(zero.size())}}, zero);
  }
};

}  // namespace detail

}  // namespace kiln
