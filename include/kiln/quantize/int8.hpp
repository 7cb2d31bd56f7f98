#pragma once
#include "kiln/pass/insert_quantization.hpp"
#include "kiln/quantize/calibration.hpp"

// Static quantization to integers: products read bytes whose scales were calibrated.
namespace kiln::quantize {

/// What one value is quantized to, whatever the options say of all. What is not set is as they say.
struct value_override {
  std::optional<dtype> type = {};
  std::optional<bool> symmetric = {}, reduced = {};
  std::optional<double> low = {}, high = {};  ///< of the range
  std::optional<float> scale = {};            ///< with `zero`, instead of a range
  std::optional<std::int64_t> zero = {};
};

/// What is quantized, and how.
struct int8_options {
  /// u8, i8, u16, i16, u4 or i4; i8 and i16 are always symmetric. The CPU multiplies bytes, others as floats.
  dtype activations = dtype::u8;
  /// The zero point of activations is the middle of the codes.
  bool symmetric = false;
  /// Half the codes, for processors whose products of bytes saturate.
  bool reduced = false;
  /// Ranges of activations are widened to this at least.
  double least_width = 0;
  /// Of i8, u8, i16, u16, i4 or u4.
  weight_quantization weights{};
  /// Products of two values that are both of a run are quantized too.
  bool products_of_values = false;
  /// Constants that are added to products become i32 whose scale is the product of both scales, as QLinearConv has it.
  bool bias = false;
  /// The ops that are quantized: "dot", "convolution".
  std::vector<std::string> ops{"dot", "convolution"};
  /// Products (source nodes) that stay in floats, and, if there are some, those that alone are quantized. A name that
  /// no product has is a `not_found` error.
  std::vector<std::string> exclude{}, only{};
  /// Values made by these ops stay in floats, and so do products that read them.
  std::vector<std::string> exclude_results_of{};
  /// By the name of a value that products read. One that is not quantized is a `not_found` error.
  std::map<std::string, value_override> overrides{};
  /// Results are integers, too, where what they are computed of is (pass/quantizable_results.hpp), and biases are i32:
  /// what files in the form `onnx::quantized_form::qoperator` need.
  bool results = false;
  /// `to_dynamic_int8`: convolutions, too. The border of an image is corrected by the zero point of each run.
  bool dynamic_convolutions = false;
};

/// The program as its products are quantized: batch norm, constants and shapes are folded, so that ranges are those of
/// the values that remain.
program prepared(program p);

/// What the products of a source program, before `prepared`, are named in the prepared one: one into which the nodes
/// after it were folded, as batch norm is, has the name of one of those. Names of no such product stay as they are.
std::vector<std::string> prepared_names(const program& source, const program& prepared,
                                        std::span<const std::string> names);

/// The values of a prepared program whose ranges static quantization needs, in order, each once. What is dequantized
/// from bytes already, or only moved, needs none, nor what `overrides` give a scale.
std::vector<watched_value> values_to_quantize(const program& p, const int8_options& options = {});

/// A quantized program, with what was done and what was not, and why.
struct quantized_program {
  program graph;
  pass_note note{"quantize"};
};

/// Quantizes a prepared program: each product of `values_to_quantize` whose value has a range reads integers; the
/// others stay in floats, and a remark names them. No product with a range is an `invalid_argument` error.
quantized_program to_int8(program p, const ranges& ranges, const int8_options& options = {});

/// Dynamic quantization of a prepared program: each dot of a value and constant weights multiplies bytes, the value's
/// by the range that a run finds in it. Needs no ranges. Convolutions stay in floats, unless the options say otherwise.
/// Of the others, those about weights and `reduced`, `exclude` and `ops` count. No such product is an
/// `invalid_argument` error.
quantized_program to_dynamic_int8(program p, const int8_options& options = {});

}  // namespace kiln::quantize
