#ifndef KILN_ONNXRUNTIME_CXX_BASE_H
#define KILN_ONNXRUNTIME_CXX_BASE_H
#include <onnxruntime_c_api.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/* Owners of ONNX Runtime's objects, and statuses as exceptions. Every wrapper converts to the pointer it holds;
   `release` gives it up. Strings that ONNX Runtime allocates are freed with the allocator they came from. */

namespace Ort {

/// What a call of ONNX Runtime failed with.
struct Exception : std::exception {
  Exception(const std::string& message, OrtErrorCode code) : message_(message), code_(code) {}
  OrtErrorCode GetOrtErrorCode() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
  OrtErrorCode code_;
};

namespace detail {
/// The table is asked for when it is first used; a library of an older version has none, which ends the program's use.
inline const OrtApi*& api() {
#ifdef ORT_API_MANUAL_INIT
  static const OrtApi* table = nullptr;
#else
  static const OrtApi* table = OrtGetApiBase()->GetApi(ORT_API_VERSION);
#endif
  return table;
}
}  // namespace detail

/// ONNX Runtime's table of functions; an `Exception` where the library has none of ORT_API_VERSION.
inline const OrtApi& GetApi() {
  const OrtApi* const table = detail::api();
  if (!table)
    throw Exception("ONNX Runtime's library has no interface of version ORT_API_VERSION", ORT_NOT_IMPLEMENTED);
  return *table;
}
/// For programs that define ORT_API_MANUAL_INIT and find the library themselves.
inline void InitApi(const OrtApi* table) { detail::api() = table; }
inline void InitApi() { InitApi(OrtGetApiBase()->GetApi(ORT_API_VERSION)); }

/// Throws what a status says, and releases it; a null status is success.
inline void ThrowOnError(OrtStatus* status) {
  if (!status) return;
  const Exception thrown(GetApi().GetErrorMessage(status), GetApi().GetErrorCode(status));
  GetApi().ReleaseStatus(status);
  throw thrown;
}

inline std::string GetVersionString() { return OrtGetApiBase()->GetVersionString(); }
inline std::string GetBuildInfoString() { return GetApi().GetBuildInfoString(); }
inline std::vector<std::string> GetAvailableProviders() {
  char** names = nullptr;
  int count = 0;
  ThrowOnError(GetApi().GetAvailableProviders(&names, &count));
  std::vector<std::string> out(names, names + count);
  ThrowOnError(GetApi().ReleaseAvailableProviders(names, count));
  return out;
}

namespace detail {

inline void OrtRelease(OrtAllocator* p) { GetApi().ReleaseAllocator(p); }
inline void OrtRelease(OrtEnv* p) { GetApi().ReleaseEnv(p); }
inline void OrtRelease(OrtIoBinding* p) { GetApi().ReleaseIoBinding(p); }
inline void OrtRelease(OrtKeyValuePairs* p) { GetApi().ReleaseKeyValuePairs(p); }
inline void OrtRelease(OrtLoraAdapter* p) { GetApi().ReleaseLoraAdapter(p); }
inline void OrtRelease(OrtMapTypeInfo* p) { GetApi().ReleaseMapTypeInfo(p); }
inline void OrtRelease(OrtMemoryInfo* p) { GetApi().ReleaseMemoryInfo(p); }
inline void OrtRelease(OrtModelMetadata* p) { GetApi().ReleaseModelMetadata(p); }
inline void OrtRelease(OrtPrepackedWeightsContainer* p) { GetApi().ReleasePrepackedWeightsContainer(p); }
inline void OrtRelease(OrtRunOptions* p) { GetApi().ReleaseRunOptions(p); }
inline void OrtRelease(OrtSequenceTypeInfo* p) { GetApi().ReleaseSequenceTypeInfo(p); }
inline void OrtRelease(OrtSession* p) { GetApi().ReleaseSession(p); }
inline void OrtRelease(OrtSessionOptions* p) { GetApi().ReleaseSessionOptions(p); }
inline void OrtRelease(OrtStatus* p) { GetApi().ReleaseStatus(p); }
inline void OrtRelease(OrtTensorTypeAndShapeInfo* p) { GetApi().ReleaseTensorTypeAndShapeInfo(p); }
inline void OrtRelease(OrtThreadingOptions* p) { GetApi().ReleaseThreadingOptions(p); }
inline void OrtRelease(OrtTypeInfo* p) { GetApi().ReleaseTypeInfo(p); }
inline void OrtRelease(OrtValue* p) { GetApi().ReleaseValue(p); }

/// A pointer that somebody else owns.
template <class T> struct Unowned { using Type = T; };

/// The owner of an object.
template <class T> struct Base {
  using contained_type = T;
  Base() = default;
  explicit Base(T* p) : p_(p) {}
  Base(const Base&) = delete;
  Base& operator=(const Base&) = delete;
  Base(Base&& other) noexcept : p_(other.release()) {}
  Base& operator=(Base&& other) noexcept {
    if (this != &other) {
      if (p_) OrtRelease(p_);
      p_ = other.release();
    }
    return *this;
  }
  ~Base() {
    if (p_) OrtRelease(p_);
  }
  constexpr operator T*() const noexcept { return p_; }
  T* release() noexcept { return std::exchange(p_, nullptr); }

 protected:
  T* p_ = nullptr;
};

/// The same of an object that somebody else owns.
template <class T> struct Base<Unowned<T>> {
  using contained_type = T;
  Base() = default;
  explicit Base(T* p) : p_(p) {}
  constexpr operator T*() const noexcept { return p_; }

 protected:
  T* p_ = nullptr;
};

/// Calls a function of the table whose last argument receives the answer.
template <class Answer, class Function, class... Args> Answer get(Function OrtApi::*f, Args... args) {
  Answer out{};
  ThrowOnError((GetApi().*f)(args..., &out));
  return out;
}

struct AllocatedFree {
  OrtAllocator* allocator;
  void operator()(void* p) const {
    if (p) static_cast<void>(GetApi().AllocatorFree(allocator, p));
  }
};

/// Keys and values as arrays of C strings that live as long as the map.
struct Pairs {
  explicit Pairs(const std::unordered_map<std::string, std::string>& of) {
    for (const auto& [key, value] : of) keys.push_back(key.c_str()), values.push_back(value.c_str());
  }
  std::vector<const char*> keys, values;
};

}  // namespace detail

using AllocatedStringPtr = std::unique_ptr<char, detail::AllocatedFree>;

/// A status that is looked at instead of thrown.
struct Status : detail::Base<OrtStatus> {
  explicit Status(std::nullptr_t) {}
  explicit Status(OrtStatus* status) : Base(status) {}
  explicit Status(const Exception& e) : Status(e.what(), e.GetOrtErrorCode()) {}
  explicit Status(const std::exception& e) : Status(e.what(), ORT_FAIL) {}
  Status(const char* message, OrtErrorCode code) : Base(GetApi().CreateStatus(code, message)) {}
  bool IsOK() const { return !p_; }
  std::string GetErrorMessage() const { return p_ ? GetApi().GetErrorMessage(p_) : ""; }
  OrtErrorCode GetErrorCode() const { return p_ ? GetApi().GetErrorCode(p_) : ORT_OK; }
};

/// Texts by name.
struct KeyValuePairs : detail::Base<OrtKeyValuePairs> {
  explicit KeyValuePairs(std::nullptr_t) {}
  KeyValuePairs() { GetApi().CreateKeyValuePairs(&p_); }
  explicit KeyValuePairs(const std::unordered_map<std::string, std::string>& from) : KeyValuePairs() {
    for (const auto& [key, value] : from) Add(key.c_str(), value.c_str());
  }
  void Add(const char* key, const char* value) { GetApi().AddKeyValuePair(p_, key, value); }
  void Remove(const char* key) { GetApi().RemoveKeyValuePair(p_, key); }
  const char* GetValue(const char* key) const { return GetApi().GetKeyValue(p_, key); }
  std::unordered_map<std::string, std::string> GetKeyValuePairs() const {
    const char* const* keys = nullptr;
    const char* const* values = nullptr;
    std::size_t count = 0;
    GetApi().GetKeyValuePairs(p_, &keys, &values, &count);
    std::unordered_map<std::string, std::string> out;
    for (std::size_t i = 0; i < count; ++i) out.emplace(keys[i], values[i]);
    return out;
  }
};

namespace detail {
template <class T> struct MemoryInfoImpl : Base<T> {
  using Base<T>::Base;
  std::string GetAllocatorName() const { return get<const char*>(&OrtApi::MemoryInfoGetName, this->p_); }
  OrtAllocatorType GetAllocatorType() const { return get<OrtAllocatorType>(&OrtApi::MemoryInfoGetType, this->p_); }
  int GetDeviceId() const { return get<int>(&OrtApi::MemoryInfoGetId, this->p_); }
  OrtMemType GetMemoryType() const { return get<OrtMemType>(&OrtApi::MemoryInfoGetMemType, this->p_); }
  OrtMemoryInfoDeviceType GetDeviceType() const {
    OrtMemoryInfoDeviceType out{};
    GetApi().MemoryInfoGetDeviceType(this->p_, &out);
    return out;
  }
  template <class U> bool operator==(const MemoryInfoImpl<U>& other) const {
    const OrtMemoryInfo* const b = other;
    return get<int>(&OrtApi::CompareMemoryInfo, static_cast<const OrtMemoryInfo*>(this->p_), b) == 0;
  }
};
}  // namespace detail

using ConstMemoryInfo = detail::MemoryInfoImpl<detail::Unowned<const OrtMemoryInfo>>;
/// Where a tensor's memory is.
struct MemoryInfo : detail::MemoryInfoImpl<OrtMemoryInfo> {
  explicit MemoryInfo(std::nullptr_t) {}
  explicit MemoryInfo(OrtMemoryInfo* p) : MemoryInfoImpl(p) {}
  MemoryInfo(const char* name, OrtAllocatorType type, int id, OrtMemType memory)
      : MemoryInfoImpl(detail::get<OrtMemoryInfo*>(&OrtApi::CreateMemoryInfo, name, type, id, memory)) {}
  static MemoryInfo CreateCpu(OrtAllocatorType type, OrtMemType memory) {
    return MemoryInfo(detail::get<OrtMemoryInfo*>(&OrtApi::CreateCpuMemoryInfo, type, memory));
  }
  ConstMemoryInfo GetConst() const { return ConstMemoryInfo(p_); }
};

/// Memory that goes back to its allocator.
struct MemoryAllocation {
  MemoryAllocation(OrtAllocator* from, void* p, std::size_t bytes) : memory_(p, {from}), bytes_(bytes) {}
  void* get() { return memory_.get(); }
  std::size_t size() const { return bytes_; }

 private:
  std::unique_ptr<void, detail::AllocatedFree> memory_;
  std::size_t bytes_;
};

namespace detail {
template <class T> struct AllocatorImpl : Base<T> {
  using Base<T>::Base;
  void* Alloc(std::size_t bytes) { return get<void*>(&OrtApi::AllocatorAlloc, this->p_, bytes); }
  MemoryAllocation GetAllocation(std::size_t bytes) { return MemoryAllocation(this->p_, Alloc(bytes), bytes); }
  void Free(void* p) { ThrowOnError(GetApi().AllocatorFree(this->p_, p)); }
  ConstMemoryInfo GetInfo() const {
    return ConstMemoryInfo(get<const OrtMemoryInfo*>(&OrtApi::AllocatorGetInfo, this->p_));
  }
};
}  // namespace detail

/// ONNX Runtime's own allocator of host memory.
struct AllocatorWithDefaultOptions : detail::AllocatorImpl<detail::Unowned<OrtAllocator>> {
  explicit AllocatorWithDefaultOptions(std::nullptr_t) {}
  AllocatorWithDefaultOptions() : AllocatorImpl(detail::get<OrtAllocator*>(&OrtApi::GetAllocatorWithDefaultOptions)) {}
};
using UnownedAllocator = detail::AllocatorImpl<detail::Unowned<OrtAllocator>>;

}  // namespace Ort
#endif
