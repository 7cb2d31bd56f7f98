#include "kiln/interface/onnxruntime/node/impl/tensors.hpp"

#include <limits>

namespace kiln::node {

namespace {

constexpr int text_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;

/// Element types that Tensor has: what arrays hold them, and their bits.
struct element {
  int type;
  array_kind kind, also;
  unsigned bits;
};
constexpr element elements[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, array_kind::f32, array_kind::f32, 32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, array_kind::u8, array_kind::u8_clamped, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, array_kind::i8, array_kind::i8, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, array_kind::u16, array_kind::u16, 16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, array_kind::i16, array_kind::i16, 16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, array_kind::i32, array_kind::i32, 32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, array_kind::i64, array_kind::i64, 64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, array_kind::u8, array_kind::u8, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, array_kind::u16, array_kind::u16, 16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, array_kind::f64, array_kind::f64, 64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, array_kind::u32, array_kind::u32, 32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, array_kind::u64, array_kind::u64, 64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4, array_kind::u8, array_kind::u8, 4},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4, array_kind::u8, array_kind::u8, 4},
};
const element* element_of(int type) {
  for (const element& e : elements)
    if (e.type == type) return &e;
  return nullptr;
}

std::size_t elements_of(const given_tensor& t) {
  std::size_t out = 1;
  for (const std::int64_t n : t.dims)
    if (__builtin_mul_overflow(out, static_cast<std::size_t>(n), &out) ||
        out > std::numeric_limits<std::size_t>::max() / 8)
      throw std::invalid_argument("tensor " + t.name + ": its dims are too large");
  return out;
}

napi_value member(napi_env env, napi_value tensor, std::uint32_t index) {
  napi_value out = nullptr;
  check(napi_get_element(env, tensor, index, &out), "a tensor's member");
  return out;
}

}  // namespace

given_tensor read_tensor(napi_env env, napi_value from, const std::string& name) {
  // [type, dims, data]: names of members are JavaScript's to read
  given_tensor out{name,
                   static_cast<int>(number_of(env, member(env, from, 0), "a tensor's type")),
                   extents_of(env, member(env, from, 1), "the dims of tensor " + name),
                   {},
                   {}};
  const std::size_t count = elements_of(out);
  const napi_value data = member(env, from, 2);
  if (out.type == text_type) {
    out.texts = texts_of(env, data, "the data of tensor " + name);
    if (out.texts.size() != count)
      throw std::invalid_argument("tensor " + name + ": its dims say " + std::to_string(count) + " strings, found " +
                                  std::to_string(out.texts.size()));
    return out;
  }
  const element* const e = element_of(out.type);
  if (!e) throw std::invalid_argument("tensor " + name + ": kiln's backend takes no such type");
  const typed_bytes found = bytes_of(env, data, "the data of tensor " + name);
  const std::size_t bytes = (count * e->bits + 7) / 8;
  if (found.kind != e->kind && found.kind != e->also)
    throw std::invalid_argument("tensor " + name + ": its data is no array of its type");
  if (found.bytes.size() != bytes)
    throw std::invalid_argument("tensor " + name + ": its dims say " + std::to_string(bytes) + " bytes, found " +
                                std::to_string(found.bytes.size()));
  out.bytes = found.bytes;
  return out;
}

Ort::Value to_value(given_tensor& from) {
  static const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  static std::byte nothing{};
  const auto type = static_cast<ONNXTensorElementDataType>(from.type);
  if (from.type != text_type)
    return Ort::Value::CreateTensor(memory, from.bytes.empty() ? &nothing : from.bytes.data(), from.bytes.size(),
                                    from.dims.data(), from.dims.size(), type);
  Ort::AllocatorWithDefaultOptions allocator;
  Ort::Value out = Ort::Value::CreateTensor(allocator, from.dims.data(), from.dims.size(), type);
  for (std::size_t i = 0; i < from.texts.size(); ++i)
    std::memcpy(out.GetResizedStringTensorElementBuffer(i, from.texts[i].size()), from.texts[i].data(),
                from.texts[i].size());
  return out;
}

napi_value from_value(napi_env env, const Ort::Value& v, const std::string& name) {
  if (!v || !v.HasValue() || !v.IsTensor())
    throw std::runtime_error("output " + name + " is no tensor, which Tensor cannot hold");
  const Ort::TensorTypeAndShapeInfo info = v.GetTensorTypeAndShapeInfo();
  const int type = info.GetElementType();
  std::vector<napi_value> dims;
  for (const std::int64_t n : info.GetShape()) dims.push_back(to_value(env, static_cast<double>(n)));
  napi_value data = nullptr;
  if (type == text_type) {
    std::vector<napi_value> texts;
    for (std::size_t i = 0; i < info.GetElementCount(); ++i)
      texts.push_back(to_value(env, v.GetStringTensorElement(i)));
    data = to_array(env, texts);
  } else {
    if (!element_of(type))
      throw std::runtime_error("output " + name + " has a type that Tensor cannot hold: " + std::to_string(type));
    const auto* const bytes = static_cast<const std::byte*>(v.GetTensorRawData());
    data = to_buffer(env, {bytes, v.GetTensorSizeInBytes()});
  }
  return to_object(env,
                   {{"type", to_value(env, static_cast<double>(type))}, {"dims", to_array(env, dims)}, {"data", data}});
}

napi_value describe(napi_env env, const std::string& name, const Ort::TypeInfo& type) {
  double element_type = 0;
  std::vector<napi_value> shape;
  if (type.GetONNXType() == ONNX_TYPE_TENSOR) {
    const Ort::ConstTensorTypeAndShapeInfo info = type.GetTensorTypeAndShapeInfo();
    element_type = info.GetElementType();
    const std::vector<std::int64_t> extents = info.GetShape();
    const std::vector<const char*> names = info.GetSymbolicDimensions();
    for (std::size_t i = 0; i < extents.size(); ++i)
      shape.push_back(extents[i] < 0 ? to_value(env, std::string_view(names[i]))
                                     : to_value(env, static_cast<double>(extents[i])));
  }
  return to_object(env, {{"name", to_value(env, std::string_view(name))},
                         {"type", to_value(env, element_type)},
                         {"shape", to_array(env, shape)}});
}

}  // namespace kiln::node
