/* Errors, texts, lists and tensors of GenAI's C++ interface; ort_genai.h includes it. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#define OGA_USE_SPAN 1
#endif

#include <ort_genai_c.h>

/* The classes stand for the C interface's opaque objects: their pointers are those of the C interface, and nothing of
   these types is ever made or copied. */
struct OgaAbstract {
  OgaAbstract() = delete;
  OgaAbstract(const OgaAbstract&) = delete;
  void operator=(const OgaAbstract&) = delete;
};

struct OgaResult : OgaAbstract {
  const char* GetError() const { return OgaResultGetError(this); }
  static void operator delete(void* p) { OgaDestroyResult(static_cast<OgaResult*>(p)); }
};

/* Throws what a result says. */
inline void OgaCheckResult(OgaResult* result) {
  if (!result) return;
  const std::unique_ptr<OgaResult> owner(result);
  throw std::runtime_error(owner->GetError());
}

namespace OgaDetail {
/* Calls a function of the C interface, whose last parameter is the place of a new object or value. */
template <class T, class Function, class... Arguments> T* New(Function function, Arguments... arguments) {
  T* made = nullptr;
  OgaCheckResult(function(arguments..., &made));
  return made;
}
template <class T, class Function, class... Arguments>
std::unique_ptr<T> Owned(Function function, Arguments... arguments) {
  return std::unique_ptr<T>(New<T>(function, arguments...));
}
template <class T, class Function, class... Arguments> T Value(Function function, Arguments... arguments) {
  T value{};
  OgaCheckResult(function(arguments..., &value));
  return value;
}
}  // namespace OgaDetail

struct OgaFloat16_t;
struct OgaBFloat16_t;

/* The element type of a C++ type. */
template <class T> inline constexpr OgaElementType OgaTypeToElementType = T::a_type_that_tensors_have;
template <> inline constexpr OgaElementType OgaTypeToElementType<bool> = OgaElementType_bool;
template <> inline constexpr OgaElementType OgaTypeToElementType<std::int8_t> = OgaElementType_int8;
template <> inline constexpr OgaElementType OgaTypeToElementType<std::uint8_t> = OgaElementType_uint8;
template <> inline constexpr OgaElementType OgaTypeToElementType<std::int16_t> = OgaElementType_int16;
template <> inline constexpr OgaElementType OgaTypeToElementType<std::uint16_t> = OgaElementType_uint16;
template <> inline constexpr OgaElementType OgaTypeToElementType<std::int32_t> = OgaElementType_int32;
template <> inline constexpr OgaElementType OgaTypeToElementType<std::uint32_t> = OgaElementType_uint32;
template <> inline constexpr OgaElementType OgaTypeToElementType<std::int64_t> = OgaElementType_int64;
template <> inline constexpr OgaElementType OgaTypeToElementType<std::uint64_t> = OgaElementType_uint64;
template <> inline constexpr OgaElementType OgaTypeToElementType<float> = OgaElementType_float32;
template <> inline constexpr OgaElementType OgaTypeToElementType<double> = OgaElementType_float64;
template <> inline constexpr OgaElementType OgaTypeToElementType<OgaFloat16_t> = OgaElementType_float16;
template <> inline constexpr OgaElementType OgaTypeToElementType<OgaBFloat16_t> = OgaElementType_bfloat16;

/* A text that is freed with its owner. */
struct OgaString {
  OgaString(const char* p) : p_(p) {}
  OgaString(OgaString&& other) noexcept : p_(other.p_) { other.p_ = nullptr; }
  OgaString(const OgaString&) = delete;
  OgaString& operator=(const OgaString&) = delete;
  ~OgaString() { OgaDestroyString(p_); }
  operator const char*() const { return p_; }
  const char* p_;
};

struct OgaStringArray : OgaAbstract {
  static std::unique_ptr<OgaStringArray> Create() { return OgaDetail::Owned<OgaStringArray>(OgaCreateStringArray); }
  static std::unique_ptr<OgaStringArray> Create(const char* const* strings, size_t count) {
    return OgaDetail::Owned<OgaStringArray>(OgaCreateStringArrayFromStrings, strings, count);
  }
  void Add(const char* text) { OgaCheckResult(OgaStringArrayAddString(this, text)); }
  const char* Get(size_t index) const { return OgaDetail::Value<const char*>(OgaStringArrayGetString, this, index); }
  size_t Count() const { return OgaDetail::Value<size_t>(OgaStringArrayGetCount, this); }
  static void operator delete(void* p) { OgaDestroyStringArray(static_cast<OgaStringArray*>(p)); }
};

struct OgaSequences : OgaAbstract {
  static std::unique_ptr<OgaSequences> Create() { return OgaDetail::Owned<OgaSequences>(OgaCreateSequences); }
  size_t Count() const { return OgaSequencesCount(this); }
  size_t SequenceCount(size_t index) const { return OgaSequencesGetSequenceCount(this, index); }
  const int32_t* SequenceData(size_t index) const { return OgaSequencesGetSequenceData(this, index); }
  void Append(const int32_t* tokens, size_t count) { OgaCheckResult(OgaAppendTokenSequence(tokens, count, this)); }
  void Append(int32_t token, size_t index) { OgaCheckResult(OgaAppendTokenToSequence(token, this, index)); }
  void Append(const std::vector<int32_t>& tokens) { Append(tokens.data(), tokens.size()); }
#if OGA_USE_SPAN
  void Append(std::span<const int32_t> tokens) { Append(tokens.data(), tokens.size()); }
  std::span<const int32_t> Get(size_t index) const { return {SequenceData(index), SequenceCount(index)}; }
#endif
  static void operator delete(void* p) { OgaDestroySequences(static_cast<OgaSequences*>(p)); }
};

struct OgaTensor : OgaAbstract {
  static std::unique_ptr<OgaTensor> Create(void* data, const int64_t* shape, size_t rank, OgaElementType type) {
    return OgaDetail::Owned<OgaTensor>(OgaCreateTensorFromBuffer, data, shape, rank, type);
  }
#if OGA_USE_SPAN
  template <class T> static std::unique_ptr<OgaTensor> Create(T* data, std::span<const int64_t> shape) {
    return Create(data, shape.data(), shape.size(), OgaTypeToElementType<T>);
  }
  static std::unique_ptr<OgaTensor> Create(void* data, std::span<const int64_t> shape, OgaElementType type) {
    return Create(data, shape.data(), shape.size(), type);
  }
#endif
  OgaElementType Type() { return OgaDetail::Value<OgaElementType>(OgaTensorGetType, this); }
  std::vector<int64_t> Shape() {
    std::vector<int64_t> shape(OgaDetail::Value<size_t>(OgaTensorGetShapeRank, this));
    OgaCheckResult(OgaTensorGetShape(this, shape.data(), shape.size()));
    return shape;
  }
  void* Data() { return OgaDetail::Value<void*>(OgaTensorGetData, this); }
  static void operator delete(void* p) { OgaDestroyTensor(static_cast<OgaTensor*>(p)); }
};

struct OgaNamedTensors : OgaAbstract {
  static std::unique_ptr<OgaNamedTensors> Create() { return OgaDetail::Owned<OgaNamedTensors>(OgaCreateNamedTensors); }
  std::unique_ptr<OgaTensor> Get(const char* name) {
    return OgaDetail::Owned<OgaTensor>(OgaNamedTensorsGet, this, name);
  }
  void Set(const char* name, OgaTensor& tensor) { OgaCheckResult(OgaNamedTensorsSet(this, name, &tensor)); }
  void Delete(const char* name) { OgaCheckResult(OgaNamedTensorsDelete(this, name)); }
  size_t Count() const { return OgaDetail::Value<size_t>(OgaNamedTensorsCount, this); }
  std::unique_ptr<OgaStringArray> GetNames() const {
    return OgaDetail::Owned<OgaStringArray>(OgaNamedTensorsGetNames, this);
  }
  static void operator delete(void* p) { OgaDestroyNamedTensors(static_cast<OgaNamedTensors*>(p)); }
};

/* Calls OgaShutdown at its end. */
struct OgaHandle {
  OgaHandle() = default;
  OgaHandle(const OgaHandle&) = delete;
  OgaHandle& operator=(const OgaHandle&) = delete;
  ~OgaHandle() noexcept { OgaShutdown(); }
};

namespace Oga {
inline void SetLogBool(const char* name, bool value) { OgaCheckResult(OgaSetLogBool(name, value)); }
inline void SetLogString(const char* name, const char* value) { OgaCheckResult(OgaSetLogString(name, value)); }
inline void SetLogCallback(void (*callback)(const char*, size_t)) { OgaCheckResult(OgaSetLogCallback(callback)); }
inline void SetCurrentGpuDeviceId(int device_id) { OgaCheckResult(OgaSetCurrentGpuDeviceId(device_id)); }
inline int GetCurrentGpuDeviceId() { return OgaDetail::Value<int>(OgaGetCurrentGpuDeviceId); }
inline void SetTelemetryEnabled(bool enabled) { OgaSetTelemetryEnabled(enabled); }
}  // namespace Oga
