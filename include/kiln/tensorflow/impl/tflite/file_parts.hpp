#pragma once
#include <tflite_file_generated.h>

#include "kiln/onnx/node.hpp"
#include "kiln/tensorflow/impl/tflite/tflite_file.hpp"

// What the readers of a TFLite file's parts share. The file has passed flatbuffers' verifier.
namespace kiln::tensorflow {

namespace parts = tflite_file_parts;

[[noreturn]] void refuse_part(const std::string& where, const std::string& why);

/// A vector of a table, whose absence means that it is empty.
template <class T> std::size_t count_of(const flatbuffers::Vector<T>* v) { return v ? v->size() : 0; }
inline std::string text_of(const flatbuffers::String* s) { return s ? s->str() : std::string(); }

/// The operator that a code stands for: "CONV_2D", or the name of a custom operator.
std::string operator_name(const parts::OperatorCode& code);
/// The options of an operator of this type by name; enumerators are numbers. Those at their default are left out. A
/// structure of numbers is `words`.
std::vector<onnx::attribute> read_options(const parts::Operator& op, std::string_view type, const std::string& where);

/// Whether an operator computes on the numbers of quantized tensors, and whether it only moves elements or chooses
/// among them.
bool needs_no_reals(std::string_view type);
bool moves_elements(std::string_view type);

/// ONNX's element type; `undefined` for those that kiln's tensors do not hold.
onnx::element element_of(parts::TensorType type);
std::string type_name(parts::TensorType type);

/// How numbers stand for reals: scales[i] * (number - zeros[i]) at index i of `axis`, or everywhere for one scale.
struct quantization {
  std::vector<float> scales;
  std::vector<std::int64_t> zeros;
  std::int64_t axis = 0;
  explicit operator bool() const { return !scales.empty(); }
  friend bool operator==(const quantization&, const quantization&) = default;
};
/// None where the tensor is not quantized. Errors: `malformed`, `unsupported` for newer forms.
quantization quantization_of(const parts::Tensor& t, const std::string& where);

/// Whether a tensor has a value in the file.
bool is_constant(const parts::Model& model, const parts::Tensor& t);
/// That value. A `fault` says why kiln cannot hold it. Errors: `malformed`.
onnx::tensor read_constant(const parts::Model& model, const parts::Tensor& t, std::string name, const buffer& file);

}  // namespace kiln::tensorflow
