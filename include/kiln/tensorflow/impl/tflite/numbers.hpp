#pragma once
#include <limits>

#include "kiln/tensorflow/impl/attributes.hpp"
#include "kiln/tensorflow/impl/tflite/file_parts.hpp"

// Attributes and constants of the nodes that a file's graph becomes.
namespace kiln::tensorflow {

/// Whether a scale and a zero point of such a tensor mean reals.
constexpr bool is_quantized_type(parts::TensorType t) {
  using enum parts::TensorType;
  return t == INT8 || t == UINT8 || t == INT16 || t == UINT16 || t == INT4 || t == UINT4 || t == INT2 || t == INT32 ||
         t == INT64;
}

/// The least and the greatest number of an integer type of less than 64 bits, or of i64.
constexpr std::pair<std::int64_t, std::int64_t> range_of(dtype type) {
  if (type == dtype::i64) return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  const std::int64_t count = std::int64_t{1} << bits_of(type);
  return is_signed_integer(type) ? std::pair(-count / 2, count / 2 - 1) : std::pair(std::int64_t{0}, count - 1);
}

/// Numbers as a constant.
template <class T>
onnx::tensor constant_of(std::string name, dtype type, const dims& lens, const std::vector<T>& numbers) {
  onnx::tensor out;
  out.name = std::move(name);
  out.type = onnx::to_element(type);
  buffer bytes = buffer::allocate(numbers.size() * size_of(type));
  std::vector<double> exact(numbers.begin(), numbers.end());
  encode(type, exact.data(), bytes.data(), static_cast<std::int64_t>(exact.size()));
  out.value = literal({type, lens}, std::move(bytes));
  return out;
}

}  // namespace kiln::tensorflow
