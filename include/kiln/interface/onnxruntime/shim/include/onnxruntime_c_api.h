#ifndef KILN_ONNXRUNTIME_C_API_H
#define KILN_ONNXRUNTIME_C_API_H
#include <onnxruntime_c_types.h>

/* kiln's declaration of ONNX Runtime's C interface, for programs that have not its own headers: what a program needs to
   run models. The table's functions stand where ONNX Runtime has them; those that custom ops, kernels and other
   providers alone need have a place and no name. See docs/onnxruntime.md. */

/* The first ONNX Runtime that takes plugins in the form of kiln's; a program may ask for a later one. */
#ifndef ORT_API_VERSION
#define ORT_API_VERSION 24
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CALL(name, ...) OrtStatus*(ORT_API_CALL * name)(__VA_ARGS__)
#define RELEASE(name) void(ORT_API_CALL * Release##name)(Ort##name * object)
#define UNNAMED(from, to) void (*unnamed_##from[(to) - (from) + 1])(void)

struct OrtApi {
  CALL(CreateStatus, OrtErrorCode code, const char* message); /* 0 */
  OrtErrorCode (*GetErrorCode)(const OrtStatus* status);
  const char* (*GetErrorMessage)(const OrtStatus* status);
  CALL(CreateEnv, OrtLoggingLevel level, const char* logid, OrtEnv** out);
  CALL(CreateEnvWithCustomLogger, OrtLoggingFunction function, void* param, OrtLoggingLevel level, const char* logid,
       OrtEnv** out);
  CALL(EnableTelemetryEvents, const OrtEnv* env);
  CALL(DisableTelemetryEvents, const OrtEnv* env);
  CALL(CreateSession, const OrtEnv* env, const ORTCHAR_T* path, const OrtSessionOptions* options, OrtSession** out);
  CALL(CreateSessionFromArray, const OrtEnv* env, const void* model, size_t bytes, const OrtSessionOptions* options,
       OrtSession** out);
  CALL(Run, OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
       const OrtValue* const* inputs, size_t input_count, const char* const* output_names, size_t output_count,
       OrtValue** outputs);
  CALL(CreateSessionOptions, OrtSessionOptions** out); /* 10 */
  CALL(SetOptimizedModelFilePath, OrtSessionOptions* options, const ORTCHAR_T* path);
  CALL(CloneSessionOptions, const OrtSessionOptions* options, OrtSessionOptions** out);
  CALL(SetSessionExecutionMode, OrtSessionOptions* options, ExecutionMode mode);
  CALL(EnableProfiling, OrtSessionOptions* options, const ORTCHAR_T* prefix);
  CALL(DisableProfiling, OrtSessionOptions* options);
  CALL(EnableMemPattern, OrtSessionOptions* options);
  CALL(DisableMemPattern, OrtSessionOptions* options);
  CALL(EnableCpuMemArena, OrtSessionOptions* options);
  CALL(DisableCpuMemArena, OrtSessionOptions* options);
  CALL(SetSessionLogId, OrtSessionOptions* options, const char* logid); /* 20 */
  CALL(SetSessionLogVerbosityLevel, OrtSessionOptions* options, int level);
  CALL(SetSessionLogSeverityLevel, OrtSessionOptions* options, int level);
  CALL(SetSessionGraphOptimizationLevel, OrtSessionOptions* options, GraphOptimizationLevel level);
  CALL(SetIntraOpNumThreads, OrtSessionOptions* options, int threads);
  CALL(SetInterOpNumThreads, OrtSessionOptions* options, int threads);
  CALL(CreateCustomOpDomain, const char* domain, OrtCustomOpDomain** out);
  CALL(CustomOpDomain_Add, OrtCustomOpDomain* domain, const void* op);
  CALL(AddCustomOpDomain, OrtSessionOptions* options, OrtCustomOpDomain* domain);
  CALL(RegisterCustomOpsLibrary, OrtSessionOptions* options, const char* path, void** handle);
  CALL(SessionGetInputCount, const OrtSession* session, size_t* out); /* 30 */
  CALL(SessionGetOutputCount, const OrtSession* session, size_t* out);
  CALL(SessionGetOverridableInitializerCount, const OrtSession* session, size_t* out);
  CALL(SessionGetInputTypeInfo, const OrtSession* session, size_t index, OrtTypeInfo** out);
  CALL(SessionGetOutputTypeInfo, const OrtSession* session, size_t index, OrtTypeInfo** out);
  CALL(SessionGetOverridableInitializerTypeInfo, const OrtSession* session, size_t index, OrtTypeInfo** out);
  CALL(SessionGetInputName, const OrtSession* session, size_t index, OrtAllocator* allocator, char** out);
  CALL(SessionGetOutputName, const OrtSession* session, size_t index, OrtAllocator* allocator, char** out);
  CALL(SessionGetOverridableInitializerName, const OrtSession* session, size_t index, OrtAllocator* allocator,
       char** out);
  CALL(CreateRunOptions, OrtRunOptions** out);
  CALL(RunOptionsSetRunLogVerbosityLevel, OrtRunOptions* options, int level); /* 40 */
  CALL(RunOptionsSetRunLogSeverityLevel, OrtRunOptions* options, int level);
  CALL(RunOptionsSetRunTag, OrtRunOptions* options, const char* tag);
  CALL(RunOptionsGetRunLogVerbosityLevel, const OrtRunOptions* options, int* out);
  CALL(RunOptionsGetRunLogSeverityLevel, const OrtRunOptions* options, int* out);
  CALL(RunOptionsGetRunTag, const OrtRunOptions* options, const char** out);
  CALL(RunOptionsSetTerminate, OrtRunOptions* options);
  CALL(RunOptionsUnsetTerminate, OrtRunOptions* options);
  CALL(CreateTensorAsOrtValue, OrtAllocator* allocator, const int64_t* shape, size_t rank,
       ONNXTensorElementDataType type, OrtValue** out);
  CALL(CreateTensorWithDataAsOrtValue, const OrtMemoryInfo* info, void* data, size_t bytes, const int64_t* shape,
       size_t rank, ONNXTensorElementDataType type, OrtValue** out);
  CALL(IsTensor, const OrtValue* value, int* out); /* 50 */
  CALL(GetTensorMutableData, OrtValue* value, void** out);
  CALL(FillStringTensor, OrtValue* value, const char* const* texts, size_t count);
  CALL(GetStringTensorDataLength, const OrtValue* value, size_t* bytes);
  CALL(GetStringTensorContent, const OrtValue* value, void* texts, size_t bytes, size_t* offsets, size_t count);
  CALL(CastTypeInfoToTensorInfo, const OrtTypeInfo* info, const OrtTensorTypeAndShapeInfo** out);
  CALL(GetOnnxTypeFromTypeInfo, const OrtTypeInfo* info, ONNXType* out);
  CALL(CreateTensorTypeAndShapeInfo, OrtTensorTypeAndShapeInfo** out);
  CALL(SetTensorElementType, OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType type);
  CALL(SetDimensions, OrtTensorTypeAndShapeInfo* info, const int64_t* shape, size_t rank);
  CALL(GetTensorElementType, const OrtTensorTypeAndShapeInfo* info, ONNXTensorElementDataType* out); /* 60 */
  CALL(GetDimensionsCount, const OrtTensorTypeAndShapeInfo* info, size_t* out);
  CALL(GetDimensions, const OrtTensorTypeAndShapeInfo* info, int64_t* shape, size_t rank);
  CALL(GetSymbolicDimensions, const OrtTensorTypeAndShapeInfo* info, const char* names[], size_t rank);
  CALL(GetTensorShapeElementCount, const OrtTensorTypeAndShapeInfo* info, size_t* out);
  CALL(GetTensorTypeAndShape, const OrtValue* value, OrtTensorTypeAndShapeInfo** out);
  CALL(GetTypeInfo, const OrtValue* value, OrtTypeInfo** out);
  CALL(GetValueType, const OrtValue* value, ONNXType* out);
  CALL(CreateMemoryInfo, const char* name, OrtAllocatorType type, int id, OrtMemType memory, OrtMemoryInfo** out);
  CALL(CreateCpuMemoryInfo, OrtAllocatorType type, OrtMemType memory, OrtMemoryInfo** out);
  CALL(CompareMemoryInfo, const OrtMemoryInfo* a, const OrtMemoryInfo* b, int* out); /* 70 */
  CALL(MemoryInfoGetName, const OrtMemoryInfo* info, const char** out);
  CALL(MemoryInfoGetId, const OrtMemoryInfo* info, int* out);
  CALL(MemoryInfoGetMemType, const OrtMemoryInfo* info, OrtMemType* out);
  CALL(MemoryInfoGetType, const OrtMemoryInfo* info, OrtAllocatorType* out);
  CALL(AllocatorAlloc, OrtAllocator* allocator, size_t bytes, void** out);
  CALL(AllocatorFree, OrtAllocator* allocator, void* p);
  CALL(AllocatorGetInfo, const OrtAllocator* allocator, const OrtMemoryInfo** out);
  CALL(GetAllocatorWithDefaultOptions, OrtAllocator** out);
  CALL(AddFreeDimensionOverride, OrtSessionOptions* options, const char* denotation, int64_t extent);
  CALL(GetValue, const OrtValue* value, int index, OrtAllocator* allocator, OrtValue** out); /* 80 */
  CALL(GetValueCount, const OrtValue* value, size_t* out);
  CALL(CreateValue, const OrtValue* const* parts, size_t count, ONNXType type, OrtValue** out);
  UNNAMED(83, 91);
  RELEASE(Env); /* 92 */
  RELEASE(Status);
  RELEASE(MemoryInfo);
  RELEASE(Session);
  RELEASE(Value);
  RELEASE(RunOptions);
  RELEASE(TypeInfo);
  RELEASE(TensorTypeAndShapeInfo);
  RELEASE(SessionOptions); /* 100 */
  RELEASE(CustomOpDomain);
  CALL(GetDenotationFromTypeInfo, const OrtTypeInfo* info, const char** const denotation, size_t* length);
  CALL(CastTypeInfoToMapTypeInfo, const OrtTypeInfo* info, const OrtMapTypeInfo** out);
  CALL(CastTypeInfoToSequenceTypeInfo, const OrtTypeInfo* info, const OrtSequenceTypeInfo** out);
  CALL(GetMapKeyType, const OrtMapTypeInfo* info, ONNXTensorElementDataType* out);
  CALL(GetMapValueType, const OrtMapTypeInfo* info, OrtTypeInfo** out);
  CALL(GetSequenceElementType, const OrtSequenceTypeInfo* info, OrtTypeInfo** out);
  RELEASE(MapTypeInfo);
  RELEASE(SequenceTypeInfo);
  CALL(SessionEndProfiling, OrtSession* session, OrtAllocator* allocator, char** out); /* 110 */
  CALL(SessionGetModelMetadata, const OrtSession* session, OrtModelMetadata** out);
  CALL(ModelMetadataGetProducerName, const OrtModelMetadata* data, OrtAllocator* allocator, char** out);
  CALL(ModelMetadataGetGraphName, const OrtModelMetadata* data, OrtAllocator* allocator, char** out);
  CALL(ModelMetadataGetDomain, const OrtModelMetadata* data, OrtAllocator* allocator, char** out);
  CALL(ModelMetadataGetDescription, const OrtModelMetadata* data, OrtAllocator* allocator, char** out);
  CALL(ModelMetadataLookupCustomMetadataMap, const OrtModelMetadata* data, OrtAllocator* allocator, const char* key,
       char** out);
  CALL(ModelMetadataGetVersion, const OrtModelMetadata* data, int64_t* out);
  RELEASE(ModelMetadata);
  CALL(CreateEnvWithGlobalThreadPools, OrtLoggingLevel level, const char* logid, const OrtThreadingOptions* threads,
       OrtEnv** out);
  CALL(DisablePerSessionThreads, OrtSessionOptions* options); /* 120 */
  CALL(CreateThreadingOptions, OrtThreadingOptions** out);
  RELEASE(ThreadingOptions);
  CALL(ModelMetadataGetCustomMetadataMapKeys, const OrtModelMetadata* data, OrtAllocator* allocator, char*** keys,
       int64_t* count);
  CALL(AddFreeDimensionOverrideByName, OrtSessionOptions* options, const char* name, int64_t extent);
  CALL(GetAvailableProviders, char*** names, int* count);
  CALL(ReleaseAvailableProviders, char** names, int count);
  CALL(GetStringTensorElementLength, const OrtValue* value, size_t index, size_t* out);
  CALL(GetStringTensorElement, const OrtValue* value, size_t bytes, size_t index, void* out);
  CALL(FillStringTensorElement, OrtValue* value, const char* text, size_t index);
  CALL(AddSessionConfigEntry, OrtSessionOptions* options, const char* key, const char* text); /* 130 */
  CALL(CreateAllocator, const OrtSession* session, const OrtMemoryInfo* info, OrtAllocator** out);
  RELEASE(Allocator);
  CALL(RunWithBinding, OrtSession* session, const OrtRunOptions* options, const OrtIoBinding* binding);
  CALL(CreateIoBinding, OrtSession* session, OrtIoBinding** out);
  RELEASE(IoBinding);
  CALL(BindInput, OrtIoBinding* binding, const char* name, const OrtValue* value);
  CALL(BindOutput, OrtIoBinding* binding, const char* name, const OrtValue* value);
  CALL(BindOutputToDevice, OrtIoBinding* binding, const char* name, const OrtMemoryInfo* info);
  CALL(GetBoundOutputNames, const OrtIoBinding* binding, OrtAllocator* allocator, char** texts, size_t** lengths,
       size_t* count);
  CALL(GetBoundOutputValues, const OrtIoBinding* binding, OrtAllocator* allocator, OrtValue*** out, size_t* count);
  void (*ClearBoundInputs)(OrtIoBinding* binding); /* 141 */
  void (*ClearBoundOutputs)(OrtIoBinding* binding);
  CALL(TensorAt, OrtValue* value, const int64_t* indices, size_t rank, void** out);
  CALL(CreateAndRegisterAllocator, OrtEnv* env, const OrtMemoryInfo* info, const OrtArenaCfg* arena);
  CALL(SetLanguageProjection, const OrtEnv* env, OrtLanguageProjection projection);
  CALL(SessionGetProfilingStartTimeNs, const OrtSession* session, uint64_t* out);
  CALL(SetGlobalIntraOpNumThreads, OrtThreadingOptions* options, int threads);
  CALL(SetGlobalInterOpNumThreads, OrtThreadingOptions* options, int threads);
  CALL(SetGlobalSpinControl, OrtThreadingOptions* options, int spin);
  CALL(AddInitializer, OrtSessionOptions* options, const char* name, const OrtValue* value); /* 150 */
  CALL(CreateEnvWithCustomLoggerAndGlobalThreadPools, OrtLoggingFunction function, void* param, OrtLoggingLevel level,
       const char* logid, const OrtThreadingOptions* threads, OrtEnv** out);
  CALL(SessionOptionsAppendExecutionProvider_CUDA, OrtSessionOptions* options, const OrtCUDAProviderOptions* given);
  UNNAMED(153, 154);
  CALL(SetGlobalDenormalAsZero, OrtThreadingOptions* options);
  CALL(CreateArenaCfg, size_t most_bytes, int strategy, int first_chunk, int most_dead_bytes, OrtArenaCfg** out);
  RELEASE(ArenaCfg);
  CALL(ModelMetadataGetGraphDescription, const OrtModelMetadata* data, OrtAllocator* allocator, char** out);
  UNNAMED(159, 159);
  CALL(SetCurrentGpuDeviceId, int device); /* 160 */
  CALL(GetCurrentGpuDeviceId, int* out);
  UNNAMED(162, 164);
  CALL(AddRunConfigEntry, OrtRunOptions* options, const char* key, const char* text);
  CALL(CreatePrepackedWeightsContainer, OrtPrepackedWeightsContainer** out);
  RELEASE(PrepackedWeightsContainer);
  CALL(CreateSessionWithPrepackedWeightsContainer, const OrtEnv* env, const ORTCHAR_T* path,
       const OrtSessionOptions* options, OrtPrepackedWeightsContainer* weights, OrtSession** out);
  CALL(CreateSessionFromArrayWithPrepackedWeightsContainer, const OrtEnv* env, const void* model, size_t bytes,
       const OrtSessionOptions* options, OrtPrepackedWeightsContainer* weights, OrtSession** out);
  UNNAMED(170, 174);
  CALL(EnableOrtCustomOps, OrtSessionOptions* options);
  CALL(RegisterAllocator, OrtEnv* env, OrtAllocator* allocator);
  CALL(UnregisterAllocator, OrtEnv* env, const OrtMemoryInfo* info);
  CALL(IsSparseTensor, const OrtValue* value, int* out);
  UNNAMED(179, 191);
  CALL(HasValue, const OrtValue* value, int* out); /* 192 */
  UNNAMED(193, 193);
  CALL(GetTensorMemoryInfo, const OrtValue* value, const OrtMemoryInfo** out);
  CALL(GetExecutionProviderApi, const char* name, uint32_t version, const void** out);
  UNNAMED(196, 201);
  CALL(SynchronizeBoundInputs, OrtIoBinding* binding);
  CALL(SynchronizeBoundOutputs, OrtIoBinding* binding);
  CALL(SessionOptionsAppendExecutionProvider_CUDA_V2, OrtSessionOptions* options,
       const OrtCUDAProviderOptionsV2* given);
  UNNAMED(205, 208);
  CALL(SessionOptionsAppendExecutionProvider_MIGraphX, OrtSessionOptions* options,
       const OrtMIGraphXProviderOptions* given); /* 209 */
  CALL(AddExternalInitializers, OrtSessionOptions* options, const char* const* names, const OrtValue* const* values,
       size_t count);
  UNNAMED(211, 215);
  CALL(SessionOptionsAppendExecutionProvider, OrtSessionOptions* options, const char* provider, const char* const* keys,
       const char* const* values, size_t count); /* 216 */
  UNNAMED(217, 224);
  void (*MemoryInfoGetDeviceType)(const OrtMemoryInfo* info, OrtMemoryInfoDeviceType* out);
  CALL(UpdateEnvWithCustomLogLevel, OrtEnv* env, OrtLoggingLevel level);
  CALL(SetGlobalIntraOpThreadAffinity, OrtThreadingOptions* options, const char* affinity);
  CALL(RegisterCustomOpsLibrary_V2, OrtSessionOptions* options, const ORTCHAR_T* path);
  CALL(RegisterCustomOpsUsingFunction, OrtSessionOptions* options, const char* function);
  UNNAMED(230, 236);
  CALL(HasSessionConfigEntry, const OrtSessionOptions* options, const char* key, int* out);
  CALL(GetSessionConfigEntry, const OrtSessionOptions* options, const char* key, char* text, size_t* bytes); /* 238 */
  UNNAMED(239, 249);
  CALL(CastTypeInfoToOptionalTypeInfo, const OrtTypeInfo* info, const OrtOptionalTypeInfo** out);
  CALL(GetOptionalContainedTypeInfo, const OrtOptionalTypeInfo* info, OrtTypeInfo** out);
  CALL(GetResizedStringTensorElementBuffer, OrtValue* value, size_t index, size_t bytes, char** out);
  UNNAMED(253, 253);
  const char* (*GetBuildInfoString)(void);
  UNNAMED(255, 259);
  CALL(RunAsync, OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
       const OrtValue* const* inputs, size_t input_count, const char* const* output_names, size_t output_count,
       OrtValue** outputs, RunAsyncCallbackFn done, void* user_data); /* 260 */
  UNNAMED(261, 265);
  CALL(SetUserLoggingFunction, OrtSessionOptions* options, OrtLoggingFunction function, void* param);
  UNNAMED(267, 272);
  CALL(SetDeterministicCompute, OrtSessionOptions* options, bool deterministic);
  UNNAMED(274, 279);
  CALL(CreateLoraAdapter, const ORTCHAR_T* path, OrtAllocator* allocator, OrtLoraAdapter** out); /* 280 */
  CALL(CreateLoraAdapterFromArray, const void* data, size_t bytes, OrtAllocator* allocator, OrtLoraAdapter** out);
  RELEASE(LoraAdapter);
  CALL(RunOptionsAddActiveLoraAdapter, OrtRunOptions* options, const OrtLoraAdapter* adapter);
  CALL(SetEpDynamicOptions, OrtSession* session, const char* const* keys, const char* const* values, size_t count);
  UNNAMED(285, 290);
  const OrtModelEditorApi* (*GetModelEditorApi)(void);
  CALL(CreateTensorWithDataAndDeleterAsOrtValue, OrtAllocator* deleter, void* data, size_t bytes, const int64_t* shape,
       size_t rank, ONNXTensorElementDataType type, OrtValue** out);
  CALL(SessionOptionsSetLoadCancellationFlag, OrtSessionOptions* options, bool cancel);
  const OrtCompileApi* (*GetCompileApi)(void);
  void (*CreateKeyValuePairs)(OrtKeyValuePairs** out); /* 295 */
  void (*AddKeyValuePair)(OrtKeyValuePairs* pairs, const char* key, const char* text);
  const char* (*GetKeyValue)(const OrtKeyValuePairs* pairs, const char* key);
  void (*GetKeyValuePairs)(const OrtKeyValuePairs* pairs, const char* const** keys, const char* const** values,
                           size_t* count);
  void (*RemoveKeyValuePair)(OrtKeyValuePairs* pairs, const char* key);
  RELEASE(KeyValuePairs); /* 300 */
  CALL(RegisterExecutionProviderLibrary, OrtEnv* env, const char* name, const ORTCHAR_T* path);
  CALL(UnregisterExecutionProviderLibrary, OrtEnv* env, const char* name);
  CALL(GetEpDevices, const OrtEnv* env, const OrtEpDevice* const** devices, size_t* count);
  CALL(SessionOptionsAppendExecutionProvider_V2, OrtSessionOptions* options, OrtEnv* env,
       const OrtEpDevice* const* devices, size_t device_count, const char* const* keys, const char* const* values,
       size_t count);
  CALL(SessionOptionsSetEpSelectionPolicy, OrtSessionOptions* options, OrtExecutionProviderDevicePolicy policy);
  UNNAMED(306, 306);
  OrtHardwareDeviceType (*HardwareDevice_Type)(const OrtHardwareDevice* device);
  uint32_t (*HardwareDevice_VendorId)(const OrtHardwareDevice* device);
  const char* (*HardwareDevice_Vendor)(const OrtHardwareDevice* device);
  uint32_t (*HardwareDevice_DeviceId)(const OrtHardwareDevice* device); /* 310 */
  const OrtKeyValuePairs* (*HardwareDevice_Metadata)(const OrtHardwareDevice* device);
  const char* (*EpDevice_EpName)(const OrtEpDevice* device);
  const char* (*EpDevice_EpVendor)(const OrtEpDevice* device);
  const OrtKeyValuePairs* (*EpDevice_EpMetadata)(const OrtEpDevice* device);
  const OrtKeyValuePairs* (*EpDevice_EpOptions)(const OrtEpDevice* device);
  const OrtHardwareDevice* (*EpDevice_Device)(const OrtEpDevice* device);
  const OrtEpApi* (*GetEpApi)(void);
  CALL(GetTensorSizeInBytes, const OrtValue* value, size_t* out); /* 318 */
  UNNAMED(319, 377);
  CALL(GetTensorData, const OrtValue* value, const void** out); /* 378 */
  CALL(GetSessionOptionsConfigEntries, const OrtSessionOptions* options, OrtKeyValuePairs** out);
  UNNAMED(380, 389);
  bool (*TensorTypeAndShape_HasShape)(const OrtTensorTypeAndShapeInfo* info); /* 390 */
  UNNAMED(391, 406);
  CALL(Session_GetEpGraphAssignmentInfo, const OrtSession* session, const OrtEpAssignedSubgraph* const** parts,
       size_t* count); /* 407 */
  CALL(EpAssignedSubgraph_GetEpName, const OrtEpAssignedSubgraph* part, const char** out);
  CALL(EpAssignedSubgraph_GetNodes, const OrtEpAssignedSubgraph* part, const OrtEpAssignedNode* const** nodes,
       size_t* count);
};

#undef CALL
#undef RELEASE
#undef UNNAMED
typedef struct OrtApi OrtApi;

struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version); /* null where the library has no such version */
  const char* (*GetVersionString)(void);
};
typedef struct OrtApiBase OrtApiBase;

const OrtApiBase* OrtGetApiBase(void) NO_EXCEPTION;
OrtStatus* OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions* options, int use_arena);
OrtStatus* OrtSessionOptionsAppendExecutionProvider_CUDA(OrtSessionOptions* options, int device_id);
OrtStatus* OrtSessionOptionsAppendExecutionProvider_MIGraphX(OrtSessionOptions* options, int device_id);
OrtStatus* OrtSessionOptionsAppendExecutionProvider_Tensorrt(OrtSessionOptions* options, int device_id);

#ifdef __cplusplus
}
#endif
#endif
