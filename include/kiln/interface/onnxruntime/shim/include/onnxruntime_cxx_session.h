#ifndef KILN_ONNXRUNTIME_CXX_SESSION_H
#define KILN_ONNXRUNTIME_CXX_SESSION_H
#include <onnxruntime_cxx_env.h>
#include <onnxruntime_cxx_values.h>

/* Sessions, their options and their runs. */

namespace Ort {

/// An adapter whose weights a run adds.
struct LoraAdapter : detail::Base<OrtLoraAdapter> {
  explicit LoraAdapter(OrtLoraAdapter* p) : Base(p) {}
  static LoraAdapter CreateLoraAdapter(const std::basic_string<ORTCHAR_T>& path, OrtAllocator* allocator) {
    return LoraAdapter(detail::get<OrtLoraAdapter*>(&OrtApi::CreateLoraAdapter, path.c_str(), allocator));
  }
  static LoraAdapter CreateLoraAdapterFromArray(const void* data, std::size_t bytes, OrtAllocator* allocator) {
    return LoraAdapter(detail::get<OrtLoraAdapter*>(&OrtApi::CreateLoraAdapterFromArray, data, bytes, allocator));
  }
};

/// How one run is made.
struct RunOptions : detail::Base<OrtRunOptions> {
  explicit RunOptions(std::nullptr_t) {}
  RunOptions() : Base(detail::get<OrtRunOptions*>(&OrtApi::CreateRunOptions)) {}
  RunOptions& SetRunLogVerbosityLevel(int level) { return did(GetApi().RunOptionsSetRunLogVerbosityLevel(p_, level)); }
  RunOptions& SetRunLogSeverityLevel(int level) { return did(GetApi().RunOptionsSetRunLogSeverityLevel(p_, level)); }
  RunOptions& SetRunTag(const char* tag) { return did(GetApi().RunOptionsSetRunTag(p_, tag)); }
  RunOptions& AddConfigEntry(const char* key, const char* value) {
    return did(GetApi().AddRunConfigEntry(p_, key, value));
  }
  RunOptions& SetTerminate() { return did(GetApi().RunOptionsSetTerminate(p_)); }
  RunOptions& UnsetTerminate() { return did(GetApi().RunOptionsUnsetTerminate(p_)); }
  RunOptions& AddActiveLoraAdapter(const LoraAdapter& adapter) {
    return did(GetApi().RunOptionsAddActiveLoraAdapter(p_, adapter));
  }
  int GetRunLogVerbosityLevel() const { return detail::get<int>(&OrtApi::RunOptionsGetRunLogVerbosityLevel, p_); }
  int GetRunLogSeverityLevel() const { return detail::get<int>(&OrtApi::RunOptionsGetRunLogSeverityLevel, p_); }
  const char* GetRunTag() const { return detail::get<const char*>(&OrtApi::RunOptionsGetRunTag, p_); }

 private:
  RunOptions& did(OrtStatus* status) {
    ThrowOnError(status);
    return *this;
  }
};

/// How a session is made.
struct SessionOptions : detail::Base<OrtSessionOptions> {
  using Texts = std::unordered_map<std::string, std::string>;
  explicit SessionOptions(std::nullptr_t) {}
  explicit SessionOptions(OrtSessionOptions* p) : Base(p) {}
  SessionOptions() : Base(detail::get<OrtSessionOptions*>(&OrtApi::CreateSessionOptions)) {}
  SessionOptions Clone() const {
    return SessionOptions(detail::get<OrtSessionOptions*>(&OrtApi::CloneSessionOptions, p_));
  }

  SessionOptions& SetIntraOpNumThreads(int n) { return did(GetApi().SetIntraOpNumThreads(p_, n)); }
  SessionOptions& SetInterOpNumThreads(int n) { return did(GetApi().SetInterOpNumThreads(p_, n)); }
  SessionOptions& SetGraphOptimizationLevel(GraphOptimizationLevel level) {
    return did(GetApi().SetSessionGraphOptimizationLevel(p_, level));
  }
  SessionOptions& SetExecutionMode(ExecutionMode mode) { return did(GetApi().SetSessionExecutionMode(p_, mode)); }
  SessionOptions& SetDeterministicCompute(bool on) { return did(GetApi().SetDeterministicCompute(p_, on)); }
  SessionOptions& SetOptimizedModelFilePath(const ORTCHAR_T* path) {
    return did(GetApi().SetOptimizedModelFilePath(p_, path));
  }
  SessionOptions& EnableProfiling(const ORTCHAR_T* prefix) { return did(GetApi().EnableProfiling(p_, prefix)); }
  SessionOptions& DisableProfiling() { return did(GetApi().DisableProfiling(p_)); }
  SessionOptions& EnableMemPattern() { return did(GetApi().EnableMemPattern(p_)); }
  SessionOptions& DisableMemPattern() { return did(GetApi().DisableMemPattern(p_)); }
  SessionOptions& EnableCpuMemArena() { return did(GetApi().EnableCpuMemArena(p_)); }
  SessionOptions& DisableCpuMemArena() { return did(GetApi().DisableCpuMemArena(p_)); }
  SessionOptions& DisablePerSessionThreads() { return did(GetApi().DisablePerSessionThreads(p_)); }
  SessionOptions& EnableOrtCustomOps() { return did(GetApi().EnableOrtCustomOps(p_)); }
  SessionOptions& SetLogId(const char* logid) { return did(GetApi().SetSessionLogId(p_, logid)); }
  SessionOptions& SetLogSeverityLevel(int level) { return did(GetApi().SetSessionLogSeverityLevel(p_, level)); }
  SessionOptions& SetLogVerbosityLevel(int level) { return did(GetApi().SetSessionLogVerbosityLevel(p_, level)); }
  SessionOptions& SetLoadCancellationFlag(bool on) {
    return did(GetApi().SessionOptionsSetLoadCancellationFlag(p_, on));
  }
  SessionOptions& AddInitializer(const char* name, const OrtValue* value) {
    return did(GetApi().AddInitializer(p_, name, value));
  }
  SessionOptions& AddExternalInitializers(const std::vector<std::string>& names, const std::vector<Value>& values) {
    if (names.size() != values.size()) throw Exception("initializers need a name each", ORT_INVALID_ARGUMENT);
    std::vector<const char*> texts;
    std::vector<const OrtValue*> given;
    for (const std::string& n : names) texts.push_back(n.c_str());
    for (const Value& v : values) given.push_back(v);
    return did(GetApi().AddExternalInitializers(p_, texts.data(), given.data(), given.size()));
  }
  SessionOptions& AddFreeDimensionOverride(const char* denotation, std::int64_t extent) {
    return did(GetApi().AddFreeDimensionOverride(p_, denotation, extent));
  }
  SessionOptions& AddFreeDimensionOverrideByName(const char* name, std::int64_t extent) {
    return did(GetApi().AddFreeDimensionOverrideByName(p_, name, extent));
  }
  SessionOptions& Add(OrtCustomOpDomain* domain) { return did(GetApi().AddCustomOpDomain(p_, domain)); }
  SessionOptions& RegisterCustomOpsLibrary(const ORTCHAR_T* path) {
    return did(GetApi().RegisterCustomOpsLibrary_V2(p_, path));
  }
  SessionOptions& RegisterCustomOpsUsingFunction(const char* function) {
    return did(GetApi().RegisterCustomOpsUsingFunction(p_, function));
  }

  SessionOptions& AddConfigEntry(const char* key, const char* value) {
    return did(GetApi().AddSessionConfigEntry(p_, key, value));
  }
  bool HasConfigEntry(const char* key) const { return detail::get<int>(&OrtApi::HasSessionConfigEntry, p_, key) != 0; }
  std::string GetConfigEntry(const char* key) const {
    std::size_t bytes = 0;
    ThrowOnError(GetApi().GetSessionConfigEntry(p_, key, nullptr, &bytes));
    std::string out(bytes, '\0');
    ThrowOnError(GetApi().GetSessionConfigEntry(p_, key, out.data(), &bytes));
    out.resize(bytes ? bytes - 1 : 0);
    return out;
  }
  std::string GetConfigEntryOrDefault(const char* key, const std::string& otherwise) const {
    return HasConfigEntry(key) ? GetConfigEntry(key) : otherwise;
  }

  SessionOptions& AppendExecutionProvider(const std::string& name, const Texts& options = {}) {
    const detail::Pairs p(options);
    return did(GetApi().SessionOptionsAppendExecutionProvider(p_, name.c_str(), p.keys.data(), p.values.data(),
                                                              p.keys.size()));
  }
  SessionOptions& AppendExecutionProvider_MIGraphX(const OrtMIGraphXProviderOptions& options) {
    return did(GetApi().SessionOptionsAppendExecutionProvider_MIGraphX(p_, &options));
  }
  SessionOptions& AppendExecutionProvider_CUDA(const OrtCUDAProviderOptions& options) {
    return did(GetApi().SessionOptionsAppendExecutionProvider_CUDA(p_, &options));
  }
  SessionOptions& AppendExecutionProvider_V2(Env& env, const std::vector<ConstEpDevice>& devices,
                                             const Texts& options = {}) {
    std::vector<const OrtEpDevice*> given(devices.begin(), devices.end());
    const detail::Pairs p(options);
    return did(GetApi().SessionOptionsAppendExecutionProvider_V2(p_, env, given.data(), given.size(), p.keys.data(),
                                                                 p.values.data(), p.keys.size()));
  }
  SessionOptions& AppendExecutionProvider_V2(Env& env, const std::vector<ConstEpDevice>& devices,
                                             const KeyValuePairs& options) {
    return AppendExecutionProvider_V2(env, devices, options.GetKeyValuePairs());
  }
  SessionOptions& SetEpSelectionPolicy(OrtExecutionProviderDevicePolicy policy) {
    return did(GetApi().SessionOptionsSetEpSelectionPolicy(p_, policy));
  }

 private:
  SessionOptions& did(OrtStatus* status) {
    ThrowOnError(status);
    return *this;
  }
};

/// What a model's file says of itself.
struct ModelMetadata : detail::Base<OrtModelMetadata> {
  explicit ModelMetadata(OrtModelMetadata* p) : Base(p) {}
  AllocatedStringPtr GetProducerNameAllocated(OrtAllocator* a) const {
    return text(&OrtApi::ModelMetadataGetProducerName, a);
  }
  AllocatedStringPtr GetGraphNameAllocated(OrtAllocator* a) const {
    return text(&OrtApi::ModelMetadataGetGraphName, a);
  }
  AllocatedStringPtr GetDomainAllocated(OrtAllocator* a) const { return text(&OrtApi::ModelMetadataGetDomain, a); }
  AllocatedStringPtr GetDescriptionAllocated(OrtAllocator* a) const {
    return text(&OrtApi::ModelMetadataGetDescription, a);
  }
  AllocatedStringPtr GetGraphDescriptionAllocated(OrtAllocator* a) const {
    return text(&OrtApi::ModelMetadataGetGraphDescription, a);
  }
  std::vector<AllocatedStringPtr> GetCustomMetadataMapKeysAllocated(OrtAllocator* a) const {
    char** keys = nullptr;
    std::int64_t count = 0;
    ThrowOnError(GetApi().ModelMetadataGetCustomMetadataMapKeys(p_, a, &keys, &count));
    const std::unique_ptr<void, detail::AllocatedFree> list(keys, {a});
    std::vector<AllocatedStringPtr> out;
    for (std::int64_t i = 0; i < count; ++i) out.emplace_back(keys[i], detail::AllocatedFree{a});
    return out;
  }
  AllocatedStringPtr LookupCustomMetadataMapAllocated(const char* key, OrtAllocator* a) const {
    return {detail::get<char*>(&OrtApi::ModelMetadataLookupCustomMetadataMap, p_, a, key), {a}};
  }
  std::int64_t GetVersion() const { return detail::get<std::int64_t>(&OrtApi::ModelMetadataGetVersion, p_); }

 private:
  template <class F> AllocatedStringPtr text(F f, OrtAllocator* a) const { return {detail::get<char*>(f, p_, a), {a}}; }
};

/// Weights that several sessions share.
struct PrepackedWeightsContainer : detail::Base<OrtPrepackedWeightsContainer> {
  PrepackedWeightsContainer()
      : Base(detail::get<OrtPrepackedWeightsContainer*>(&OrtApi::CreatePrepackedWeightsContainer)) {}
};

struct IoBinding;

/// A model that is ready to run; any number of threads may.
struct Session : detail::Base<OrtSession> {
  using Names = const char* const*;
  explicit Session(std::nullptr_t) {}
  explicit Session(OrtSession* p) : Base(p) {}
  Session(const Env& env, const ORTCHAR_T* path, const SessionOptions& options) {
    ThrowOnError(GetApi().CreateSession(env, path, options, &p_));
  }
  Session(const Env& env, const void* model, std::size_t bytes, const SessionOptions& options) {
    ThrowOnError(GetApi().CreateSessionFromArray(env, model, bytes, options, &p_));
  }
  Session(const Env& env, const ORTCHAR_T* path, const SessionOptions& options, OrtPrepackedWeightsContainer* weights) {
    ThrowOnError(GetApi().CreateSessionWithPrepackedWeightsContainer(env, path, options, weights, &p_));
  }
  Session(const Env& env, const void* model, std::size_t bytes, const SessionOptions& options,
          OrtPrepackedWeightsContainer* weights) {
    ThrowOnError(
        GetApi().CreateSessionFromArrayWithPrepackedWeightsContainer(env, model, bytes, options, weights, &p_));
  }

  std::size_t GetInputCount() const { return detail::get<std::size_t>(&OrtApi::SessionGetInputCount, p_); }
  std::size_t GetOutputCount() const { return detail::get<std::size_t>(&OrtApi::SessionGetOutputCount, p_); }
  std::size_t GetOverridableInitializerCount() const {
    return detail::get<std::size_t>(&OrtApi::SessionGetOverridableInitializerCount, p_);
  }
  AllocatedStringPtr GetInputNameAllocated(std::size_t i, OrtAllocator* a) const {
    return name(&OrtApi::SessionGetInputName, i, a);
  }
  AllocatedStringPtr GetOutputNameAllocated(std::size_t i, OrtAllocator* a) const {
    return name(&OrtApi::SessionGetOutputName, i, a);
  }
  AllocatedStringPtr GetOverridableInitializerNameAllocated(std::size_t i, OrtAllocator* a) const {
    return name(&OrtApi::SessionGetOverridableInitializerName, i, a);
  }
  std::vector<std::string> GetInputNames() const { return names(GetInputCount(), &OrtApi::SessionGetInputName); }
  std::vector<std::string> GetOutputNames() const { return names(GetOutputCount(), &OrtApi::SessionGetOutputName); }
  std::vector<std::string> GetOverridableInitializerNames() const {
    return names(GetOverridableInitializerCount(), &OrtApi::SessionGetOverridableInitializerName);
  }
  TypeInfo GetInputTypeInfo(std::size_t i) const { return type(&OrtApi::SessionGetInputTypeInfo, i); }
  TypeInfo GetOutputTypeInfo(std::size_t i) const { return type(&OrtApi::SessionGetOutputTypeInfo, i); }
  TypeInfo GetOverridableInitializerTypeInfo(std::size_t i) const {
    return type(&OrtApi::SessionGetOverridableInitializerTypeInfo, i);
  }
  ModelMetadata GetModelMetadata() const {
    return ModelMetadata(detail::get<OrtModelMetadata*>(&OrtApi::SessionGetModelMetadata, p_));
  }
  std::uint64_t GetProfilingStartTimeNs() const {
    return detail::get<std::uint64_t>(&OrtApi::SessionGetProfilingStartTimeNs, p_);
  }
  AllocatedStringPtr EndProfilingAllocated(OrtAllocator* a) {
    return {detail::get<char*>(&OrtApi::SessionEndProfiling, p_, a), {a}};
  }
  void SetEpDynamicOptions(Names keys, Names values, std::size_t count) {
    ThrowOnError(GetApi().SetEpDynamicOptions(p_, keys, values, count));
  }

  /// Outputs by name, in the order asked for; where `outputs` holds a value its memory receives the result.
  void Run(const RunOptions& how, Names input_names, const Value* inputs, std::size_t input_count, Names output_names,
           Value* outputs, std::size_t output_count) {
    ThrowOnError(GetApi().Run(p_, how, input_names, pointers(inputs), input_count, output_names, output_count,
                              pointers(outputs)));
  }
  std::vector<Value> Run(const RunOptions& how, Names input_names, const Value* inputs, std::size_t input_count,
                         Names output_names, std::size_t output_count) {
    std::vector<Value> out(output_count);
    Run(how, input_names, inputs, input_count, output_names, out.data(), output_count);
    return out;
  }
  void Run(const RunOptions& how, const IoBinding& bound);
  void RunAsync(const RunOptions& how, Names input_names, const Value* inputs, std::size_t input_count,
                Names output_names, Value* outputs, std::size_t output_count, RunAsyncCallbackFn done, void* data) {
    ThrowOnError(GetApi().RunAsync(p_, how, input_names, pointers(inputs), input_count, output_names, output_count,
                                   pointers(outputs), done, data));
  }

 private:
  // a Value is a pointer and nothing else
  static_assert(sizeof(Value) == sizeof(OrtValue*));
  static const OrtValue* const* pointers(const Value* v) { return reinterpret_cast<const OrtValue* const*>(v); }
  static OrtValue** pointers(Value* v) { return reinterpret_cast<OrtValue**>(v); }
  template <class F> AllocatedStringPtr name(F f, std::size_t i, OrtAllocator* a) const {
    return {detail::get<char*>(f, p_, i, a), {a}};
  }
  template <class F> std::vector<std::string> names(std::size_t count, F f) const {
    AllocatorWithDefaultOptions a;
    std::vector<std::string> out;
    for (std::size_t i = 0; i < count; ++i) out.emplace_back(name(f, i, a).get());
    return out;
  }
  template <class F> TypeInfo type(F f, std::size_t i) const { return TypeInfo(detail::get<OrtTypeInfo*>(f, p_, i)); }
};

/// Inputs and outputs that stay where they are from run to run.
struct IoBinding : detail::Base<OrtIoBinding> {
  explicit IoBinding(std::nullptr_t) {}
  explicit IoBinding(Session& session) { ThrowOnError(GetApi().CreateIoBinding(session, &p_)); }
  void BindInput(const char* name, const Value& value) { ThrowOnError(GetApi().BindInput(p_, name, value)); }
  void BindOutput(const char* name, const Value& value) { ThrowOnError(GetApi().BindOutput(p_, name, value)); }
  /// The run allocates the output there.
  void BindOutput(const char* name, const OrtMemoryInfo* info) {
    ThrowOnError(GetApi().BindOutputToDevice(p_, name, info));
  }
  void ClearBoundInputs() { GetApi().ClearBoundInputs(p_); }
  void ClearBoundOutputs() { GetApi().ClearBoundOutputs(p_); }
  void SynchronizeInputs() { ThrowOnError(GetApi().SynchronizeBoundInputs(p_)); }
  void SynchronizeOutputs() { ThrowOnError(GetApi().SynchronizeBoundOutputs(p_)); }
  std::vector<std::string> GetOutputNames() const { return GetOutputNames(AllocatorWithDefaultOptions()); }
  std::vector<std::string> GetOutputNames(OrtAllocator* a) const {
    char* texts = nullptr;
    std::size_t* lengths = nullptr;
    std::size_t count = 0;
    ThrowOnError(GetApi().GetBoundOutputNames(p_, a, &texts, &lengths, &count));
    const std::unique_ptr<void, detail::AllocatedFree> own_texts(texts, {a}), own_lengths(lengths, {a});
    std::vector<std::string> out;
    for (std::size_t i = 0; i < count; texts += lengths[i++]) out.emplace_back(texts, lengths[i]);
    return out;
  }
  std::vector<Value> GetOutputValues() const { return GetOutputValues(AllocatorWithDefaultOptions()); }
  std::vector<Value> GetOutputValues(OrtAllocator* a) const {
    OrtValue** values = nullptr;
    std::size_t count = 0;
    ThrowOnError(GetApi().GetBoundOutputValues(p_, a, &values, &count));
    const std::unique_ptr<void, detail::AllocatedFree> list(values, {a});
    std::vector<Value> out;
    for (std::size_t i = 0; i < count; ++i) out.emplace_back(values[i]);
    return out;
  }
};

inline void Session::Run(const RunOptions& how, const IoBinding& bound) {
  ThrowOnError(GetApi().RunWithBinding(p_, how, bound));
}

/// An allocator of a session's devices.
struct Allocator : detail::AllocatorImpl<OrtAllocator> {
  explicit Allocator(std::nullptr_t) {}
  Allocator(const Session& session, const OrtMemoryInfo* info)
      : AllocatorImpl(
            detail::get<OrtAllocator*>(&OrtApi::CreateAllocator, static_cast<const OrtSession*>(session), info)) {}
};

}  // namespace Ort
#endif
