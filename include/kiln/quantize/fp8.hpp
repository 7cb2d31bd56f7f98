#pragma once
#include "kiln/quantize/int8.hpp"

// Static quantization to floats of eight bits: products read such floats whose scales were calibrated.
namespace kiln::quantize {

/// What is quantized, and how.
struct fp8_options {
  /// f8e4m3fn, f8e5m2, f8e4m3fnuz or f8e5m2fnuz, of activations and weights.
  dtype type = dtype::f8e4m3fn;
  /// A scale for each output channel of weights, else one for the tensor.
  bool per_channel = true;
  /// Products of two values that are both of a run are quantized too.
  bool products_of_values = false;
  /// As those of int8_options.
  std::vector<std::string> ops{"dot", "convolution"}, exclude{}, only{};
};

/// Those types, and the one of that name; others are an `invalid_argument` error that lists them.
constexpr dtype float8_types[] = {dtype::f8e4m3fn, dtype::f8e5m2, dtype::f8e4m3fnuz, dtype::f8e5m2fnuz};
dtype float8_named(std::string_view name);

/// The values of a prepared program whose ranges `to_fp8` needs, in order, each once.
std::vector<watched_value> values_to_quantize(const program& p, const fp8_options& options);

/// Quantizes a prepared program: each product of `values_to_quantize` whose value has a range reads floats of eight
/// bits and computes in f32; the others stay, and a remark names them. A scale is the greatest magnitude / the greatest
/// value of the type, or, of a range by `calibration_method::distribution`, the standard deviation / that of the type's
/// values; beyond it values become the greatest one, never infinite. No product with a range is an `invalid_argument`
/// error, and so is another type.
quantized_program to_fp8(program p, const ranges& ranges, const fp8_options& options = {});

}  // namespace kiln::quantize
