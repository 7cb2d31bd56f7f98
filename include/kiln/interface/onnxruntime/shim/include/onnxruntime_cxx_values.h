#ifndef KILN_ONNXRUNTIME_CXX_VALUES_H
#define KILN_ONNXRUNTIME_CXX_VALUES_H
#include <onnxruntime_cxx_base.h>

#include <cstdint>
#include <cstring>

/* Tensors, sequences and maps, and what a model says of them. */

namespace Ort {

/// Bits of a 16-bit float, as ONNX Runtime stores it.
struct Float16_t {
  std::uint16_t val = 0;
  Float16_t() = default;
  constexpr explicit Float16_t(std::uint16_t bits) : val(bits) {}
  static constexpr Float16_t FromBits(std::uint16_t bits) { return Float16_t(bits); }
  /// Rounds to the nearest, ties to even.
  explicit Float16_t(float v) : val(round(v)) {}
  float ToFloat() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(val & 0x8000u) << 16, exponent = val >> 10 & 31u;
    const std::uint32_t fraction = val & 1023u;
    float out = 0;
    if (exponent == 0) {
      out = static_cast<float>(fraction) * 0x1p-24f;
    } else {
      const std::uint32_t bits = (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13;
      std::memcpy(&out, &bits, 4);
    }
    return sign ? -out : out;
  }
  explicit operator float() const { return ToFloat(); }
  bool operator==(const Float16_t& other) const { return ToFloat() == other.ToFloat(); }

 private:
  static std::uint16_t round(float v) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &v, 4);
    const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {  // a subnormal or zero: the sum's own rounding puts the bits in place
      float shifted = 0;
      std::memcpy(&shifted, &magnitude, 4);
      shifted += 0.5f;
      std::memcpy(&bits, &shifted, 4);
      return static_cast<std::uint16_t>(sign | (bits - 0x3f000000u));
    }
    return static_cast<std::uint16_t>(sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13);
  }
};

/// Bits of a bfloat16.
struct BFloat16_t {
  std::uint16_t val = 0;
  BFloat16_t() = default;
  constexpr explicit BFloat16_t(std::uint16_t bits) : val(bits) {}
  static constexpr BFloat16_t FromBits(std::uint16_t bits) { return BFloat16_t(bits); }
  explicit BFloat16_t(float v) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &v, 4);
    val = v != v ? std::uint16_t{0x7fc0} : static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
  float ToFloat() const {
    const std::uint32_t bits = static_cast<std::uint32_t>(val) << 16;
    float out = 0;
    std::memcpy(&out, &bits, 4);
    return out;
  }
  explicit operator float() const { return ToFloat(); }
  bool operator==(const BFloat16_t& other) const { return ToFloat() == other.ToFloat(); }
};
static_assert(sizeof(Float16_t) == 2 && sizeof(BFloat16_t) == 2);

template <class T> struct TypeToTensorType;
#define KILN_ORT_ELEMENT(cxx, element)                                                         \
  template <> struct TypeToTensorType<cxx> {                                                   \
    static constexpr ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_##element; \
  }
KILN_ORT_ELEMENT(float, FLOAT);
KILN_ORT_ELEMENT(double, DOUBLE);
KILN_ORT_ELEMENT(Float16_t, FLOAT16);
KILN_ORT_ELEMENT(BFloat16_t, BFLOAT16);
KILN_ORT_ELEMENT(std::int8_t, INT8);
KILN_ORT_ELEMENT(std::int16_t, INT16);
KILN_ORT_ELEMENT(std::int32_t, INT32);
KILN_ORT_ELEMENT(std::int64_t, INT64);
KILN_ORT_ELEMENT(std::uint8_t, UINT8);
KILN_ORT_ELEMENT(std::uint16_t, UINT16);
KILN_ORT_ELEMENT(std::uint32_t, UINT32);
KILN_ORT_ELEMENT(std::uint64_t, UINT64);
KILN_ORT_ELEMENT(bool, BOOL);
#undef KILN_ORT_ELEMENT

namespace detail {
template <class T> struct TensorTypeAndShapeInfoImpl : Base<T> {
  using Base<T>::Base;
  ONNXTensorElementDataType GetElementType() const {
    return get<ONNXTensorElementDataType>(&OrtApi::GetTensorElementType, this->p_);
  }
  std::size_t GetElementCount() const { return get<std::size_t>(&OrtApi::GetTensorShapeElementCount, this->p_); }
  std::size_t GetDimensionsCount() const { return get<std::size_t>(&OrtApi::GetDimensionsCount, this->p_); }
  void GetDimensions(std::int64_t* extents, std::size_t rank) const {
    ThrowOnError(GetApi().GetDimensions(this->p_, extents, rank));
  }
  /// Extents; -1 where an extent is free.
  std::vector<std::int64_t> GetShape() const {
    std::vector<std::int64_t> out(GetDimensionsCount());
    GetDimensions(out.data(), out.size());
    return out;
  }
  void GetSymbolicDimensions(const char** names, std::size_t rank) const {
    ThrowOnError(GetApi().GetSymbolicDimensions(this->p_, names, rank));
  }
  std::vector<const char*> GetSymbolicDimensions() const {
    std::vector<const char*> out(GetDimensionsCount());
    GetSymbolicDimensions(out.data(), out.size());
    return out;
  }
  bool HasShape() const { return GetApi().TensorTypeAndShape_HasShape(this->p_); }
};
}  // namespace detail
using ConstTensorTypeAndShapeInfo =
    detail::TensorTypeAndShapeInfoImpl<detail::Unowned<const OrtTensorTypeAndShapeInfo>>;
struct TensorTypeAndShapeInfo : detail::TensorTypeAndShapeInfoImpl<OrtTensorTypeAndShapeInfo> {
  using TensorTypeAndShapeInfoImpl::TensorTypeAndShapeInfoImpl;
  ConstTensorTypeAndShapeInfo GetConst() const { return ConstTensorTypeAndShapeInfo(p_); }
};

struct TypeInfo;

/// The type of a sequence's items, of a map's keys and values, and of an optional's content. They live as long as the
/// `TypeInfo` that they are of.
struct ConstSequenceTypeInfo : detail::Base<detail::Unowned<const OrtSequenceTypeInfo>> {
  using Base::Base;
  TypeInfo GetSequenceElementType() const;
};
struct ConstMapTypeInfo : detail::Base<detail::Unowned<const OrtMapTypeInfo>> {
  using Base::Base;
  ONNXTensorElementDataType GetMapKeyType() const {
    return detail::get<ONNXTensorElementDataType>(&OrtApi::GetMapKeyType, p_);
  }
  TypeInfo GetMapValueType() const;
};
struct ConstOptionalTypeInfo : detail::Base<detail::Unowned<const OrtOptionalTypeInfo>> {
  using Base::Base;
  TypeInfo GetOptionalElementType() const;
};

/// What a model or a value says of a value's type.
struct TypeInfo : detail::Base<OrtTypeInfo> {
  using Base::Base;
  explicit TypeInfo(std::nullptr_t) {}
  ONNXType GetONNXType() const { return detail::get<ONNXType>(&OrtApi::GetOnnxTypeFromTypeInfo, p_); }
  /// These live as long as this object does.
  ConstTensorTypeAndShapeInfo GetTensorTypeAndShapeInfo() const {
    return as<ConstTensorTypeAndShapeInfo>(&OrtApi::CastTypeInfoToTensorInfo);
  }
  ConstSequenceTypeInfo GetSequenceTypeInfo() const {
    return as<ConstSequenceTypeInfo>(&OrtApi::CastTypeInfoToSequenceTypeInfo);
  }
  ConstMapTypeInfo GetMapTypeInfo() const { return as<ConstMapTypeInfo>(&OrtApi::CastTypeInfoToMapTypeInfo); }
  ConstOptionalTypeInfo GetOptionalTypeInfo() const {
    return as<ConstOptionalTypeInfo>(&OrtApi::CastTypeInfoToOptionalTypeInfo);
  }

 private:
  template <class Kind, class F> Kind as(F cast) const {
    return Kind(detail::get<typename Kind::contained_type*>(cast, p_));
  }
};

inline TypeInfo ConstSequenceTypeInfo::GetSequenceElementType() const {
  return TypeInfo(detail::get<OrtTypeInfo*>(&OrtApi::GetSequenceElementType, p_));
}
inline TypeInfo ConstMapTypeInfo::GetMapValueType() const {
  return TypeInfo(detail::get<OrtTypeInfo*>(&OrtApi::GetMapValueType, p_));
}
inline TypeInfo ConstOptionalTypeInfo::GetOptionalElementType() const {
  return TypeInfo(detail::get<OrtTypeInfo*>(&OrtApi::GetOptionalContainedTypeInfo, p_));
}

namespace detail {
/// What may be asked of a value, and what may be done to one that is not const.
template <class T> struct ValueImpl : Base<T> {
  using Base<T>::Base;
  bool HasValue() const { return get<int>(&OrtApi::HasValue, this->p_) != 0; }
  bool IsTensor() const { return get<int>(&OrtApi::IsTensor, this->p_) != 0; }
  bool IsSparseTensor() const { return get<int>(&OrtApi::IsSparseTensor, this->p_) != 0; }
  TypeInfo GetTypeInfo() const { return TypeInfo(get<OrtTypeInfo*>(&OrtApi::GetTypeInfo, this->p_)); }
  TensorTypeAndShapeInfo GetTensorTypeAndShapeInfo() const {
    return TensorTypeAndShapeInfo(get<OrtTensorTypeAndShapeInfo*>(&OrtApi::GetTensorTypeAndShape, this->p_));
  }
  ConstMemoryInfo GetTensorMemoryInfo() const {
    return ConstMemoryInfo(get<const OrtMemoryInfo*>(&OrtApi::GetTensorMemoryInfo, this->p_));
  }
  std::size_t GetTensorSizeInBytes() const { return get<std::size_t>(&OrtApi::GetTensorSizeInBytes, this->p_); }
  const void* GetTensorRawData() const {
    return get<void*>(&OrtApi::GetTensorMutableData, const_cast<OrtValue*>(static_cast<const OrtValue*>(this->p_)));
  }
  template <class E> const E* GetTensorData() const { return static_cast<const E*>(GetTensorRawData()); }
  void* GetTensorMutableRawData() { return get<void*>(&OrtApi::GetTensorMutableData, this->p_); }
  template <class E> E* GetTensorMutableData() { return static_cast<E*>(GetTensorMutableRawData()); }
  template <class E> E& At(const std::vector<std::int64_t>& indices) {
    return *static_cast<E*>(get<void*>(&OrtApi::TensorAt, this->p_, indices.data(), indices.size()));
  }

  std::size_t GetCount() const { return get<std::size_t>(&OrtApi::GetValueCount, this->p_); }
  std::size_t GetStringTensorDataLength() const {
    return get<std::size_t>(&OrtApi::GetStringTensorDataLength, this->p_);
  }
  void GetStringTensorContent(void* texts, std::size_t bytes, std::size_t* offsets, std::size_t count) const {
    ThrowOnError(GetApi().GetStringTensorContent(this->p_, texts, bytes, offsets, count));
  }
  std::size_t GetStringTensorElementLength(std::size_t index) const {
    return get<std::size_t>(&OrtApi::GetStringTensorElementLength, this->p_, index);
  }
  void GetStringTensorElement(std::size_t bytes, std::size_t index, void* to) const {
    ThrowOnError(GetApi().GetStringTensorElement(this->p_, bytes, index, to));
  }
  std::string GetStringTensorElement(std::size_t index) const {
    std::string out(GetStringTensorElementLength(index), '\0');
    if (!out.empty()) GetStringTensorElement(out.size(), index, out.data());
    return out;
  }
  void FillStringTensor(const char* const* texts, std::size_t count) {
    ThrowOnError(GetApi().FillStringTensor(this->p_, texts, count));
  }
  void FillStringTensorElement(const char* text, std::size_t index) {
    ThrowOnError(GetApi().FillStringTensorElement(this->p_, text, index));
  }
  char* GetResizedStringTensorElementBuffer(std::size_t index, std::size_t bytes) {
    return get<char*>(&OrtApi::GetResizedStringTensorElementBuffer, this->p_, index, bytes);
  }
};
}  // namespace detail

using ConstValue = detail::ValueImpl<detail::Unowned<const OrtValue>>;
using UnownedValue = detail::ValueImpl<detail::Unowned<OrtValue>>;

/// A tensor, a sequence or a map.
struct Value : detail::ValueImpl<OrtValue> {
  using Shape = const std::int64_t*;
  explicit Value(std::nullptr_t = nullptr) {}
  explicit Value(OrtValue* p) : ValueImpl(p) {}
  ConstValue GetConst() const { return ConstValue(p_); }
  UnownedValue GetUnowned() const { return UnownedValue(p_); }
  /// An item of a sequence; 0 are a map's keys, 1 its values.
  Value GetValue(int index, OrtAllocator* allocator) const {
    return Value(detail::get<OrtValue*>(&OrtApi::GetValue, p_, index, allocator));
  }

  /// A tensor over the caller's memory, which must live as long.
  static Value CreateTensor(const OrtMemoryInfo* info, void* data, std::size_t bytes, Shape shape, std::size_t rank,
                            ONNXTensorElementDataType type) {
    return Value(detail::get<OrtValue*>(&OrtApi::CreateTensorWithDataAsOrtValue, info, data, bytes, shape, rank, type));
  }
  template <class E>
  static Value CreateTensor(const OrtMemoryInfo* info, E* data, std::size_t elements, Shape shape, std::size_t rank) {
    return CreateTensor(info, data, elements * sizeof(E), shape, rank, TypeToTensorType<E>::type);
  }
  /// A tensor over memory that ONNX Runtime gives back to `deleter` with the tensor's last use.
  static Value CreateTensor(OrtAllocator* deleter, void* data, std::size_t bytes, Shape shape, std::size_t rank,
                            ONNXTensorElementDataType type) {
    return Value(detail::get<OrtValue*>(&OrtApi::CreateTensorWithDataAndDeleterAsOrtValue, deleter, data, bytes, shape,
                                        rank, type));
  }
  /// A tensor that owns its memory, which is not set.
  static Value CreateTensor(OrtAllocator* allocator, Shape shape, std::size_t rank, ONNXTensorElementDataType type) {
    return Value(detail::get<OrtValue*>(&OrtApi::CreateTensorAsOrtValue, allocator, shape, rank, type));
  }
  template <class E> static Value CreateTensor(OrtAllocator* allocator, Shape shape, std::size_t rank) {
    return CreateTensor(allocator, shape, rank, TypeToTensorType<E>::type);
  }
  static Value CreateSequence(const std::vector<Value>& items) { return of(items, ONNX_TYPE_SEQUENCE); }
  static Value CreateMap(const Value& keys, const Value& values) {
    const OrtValue* const parts[] = {keys, values};
    return Value(
        detail::get<OrtValue*>(&OrtApi::CreateValue, static_cast<const OrtValue* const*>(parts), 2, ONNX_TYPE_MAP));
  }

 private:
  static Value of(const std::vector<Value>& items, ONNXType type) {
    std::vector<const OrtValue*> parts;
    for (const Value& v : items) parts.push_back(v);
    return Value(detail::get<OrtValue*>(&OrtApi::CreateValue, static_cast<const OrtValue* const*>(parts.data()),
                                        parts.size(), type));
  }
};

}  // namespace Ort
#endif
