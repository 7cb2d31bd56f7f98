#ifndef KILN_ONNXRUNTIME_C_TYPES_H
#define KILN_ONNXRUNTIME_C_TYPES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The objects, enumerations and structs of ONNX Runtime's C interface. */

#define ORT_API_CALL
#define ORT_MUST_USE_RESULT
#define ORTCHAR_T char
#define ORT_TSTR(text) text
#define ORT_FILE __FILE__

#ifdef __cplusplus
#define NO_EXCEPTION noexcept
#else
#define NO_EXCEPTION
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* what a table of functions hands out */
#define KILN_ORT_OBJECT(name) \
  struct Ort##name;           \
  typedef struct Ort##name Ort##name
KILN_ORT_OBJECT(Allocator);
KILN_ORT_OBJECT(ArenaCfg);
KILN_ORT_OBJECT(CompileApi);
KILN_ORT_OBJECT(CUDAProviderOptionsV2);
KILN_ORT_OBJECT(CustomOpDomain);
KILN_ORT_OBJECT(Env);
KILN_ORT_OBJECT(EpApi);
KILN_ORT_OBJECT(EpAssignedNode);
KILN_ORT_OBJECT(EpAssignedSubgraph);
KILN_ORT_OBJECT(EpDevice);
KILN_ORT_OBJECT(HardwareDevice);
KILN_ORT_OBJECT(IoBinding);
KILN_ORT_OBJECT(KernelContext);
KILN_ORT_OBJECT(KernelInfo);
KILN_ORT_OBJECT(KeyValuePairs);
KILN_ORT_OBJECT(Logger);
KILN_ORT_OBJECT(LoraAdapter);
KILN_ORT_OBJECT(MapTypeInfo);
KILN_ORT_OBJECT(MemoryInfo);
KILN_ORT_OBJECT(ModelEditorApi);
KILN_ORT_OBJECT(ModelMetadata);
KILN_ORT_OBJECT(Op);
KILN_ORT_OBJECT(OpAttr);
KILN_ORT_OBJECT(OptionalTypeInfo);
KILN_ORT_OBJECT(PrepackedWeightsContainer);
KILN_ORT_OBJECT(RunOptions);
KILN_ORT_OBJECT(SequenceTypeInfo);
KILN_ORT_OBJECT(Session);
KILN_ORT_OBJECT(SessionOptions);
KILN_ORT_OBJECT(Status);
KILN_ORT_OBJECT(TensorRTProviderOptionsV2);
KILN_ORT_OBJECT(TensorTypeAndShapeInfo);
KILN_ORT_OBJECT(ThreadingOptions);
KILN_ORT_OBJECT(TrainingApi);
KILN_ORT_OBJECT(TypeInfo);
KILN_ORT_OBJECT(Value);
#undef KILN_ORT_OBJECT
typedef OrtStatus* OrtStatusPtr;

typedef enum ONNXTensorElementDataType {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 = 4,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 = 5,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL = 9,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 = 12,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 = 13,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64 = 14,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128 = 15,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN = 17,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ = 18,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2 = 19,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ = 20,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4 = 21,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 = 22
} ONNXTensorElementDataType;

typedef enum ONNXType {
  ONNX_TYPE_UNKNOWN = 0,
  ONNX_TYPE_TENSOR = 1,
  ONNX_TYPE_SEQUENCE = 2,
  ONNX_TYPE_MAP = 3,
  ONNX_TYPE_OPAQUE = 4,
  ONNX_TYPE_SPARSETENSOR = 5,
  ONNX_TYPE_OPTIONAL = 6
} ONNXType;

typedef enum OrtErrorCode {
  ORT_OK = 0,
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
  ORT_NO_SUCHFILE = 3,
  ORT_NO_MODEL = 4,
  ORT_ENGINE_ERROR = 5,
  ORT_RUNTIME_EXCEPTION = 6,
  ORT_INVALID_PROTOBUF = 7,
  ORT_MODEL_LOADED = 8,
  ORT_NOT_IMPLEMENTED = 9,
  ORT_INVALID_GRAPH = 10,
  ORT_EP_FAIL = 11
} OrtErrorCode;

typedef enum OrtLoggingLevel {
  ORT_LOGGING_LEVEL_VERBOSE = 0,
  ORT_LOGGING_LEVEL_INFO = 1,
  ORT_LOGGING_LEVEL_WARNING = 2,
  ORT_LOGGING_LEVEL_ERROR = 3,
  ORT_LOGGING_LEVEL_FATAL = 4
} OrtLoggingLevel;

typedef enum GraphOptimizationLevel {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_LAYOUT = 3,
  ORT_ENABLE_ALL = 99
} GraphOptimizationLevel;

typedef enum ExecutionMode { ORT_SEQUENTIAL = 0, ORT_PARALLEL = 1 } ExecutionMode;
typedef enum OrtAllocatorType {
  OrtInvalidAllocator = -1,
  OrtDeviceAllocator = 0,
  OrtArenaAllocator = 1,
  OrtReadOnlyAllocator = 2
} OrtAllocatorType;
typedef enum OrtMemType {
  OrtMemTypeCPUInput = -2,
  OrtMemTypeCPUOutput = -1,
  OrtMemTypeCPU = OrtMemTypeCPUOutput,
  OrtMemTypeDefault = 0
} OrtMemType;
typedef enum OrtMemoryInfoDeviceType {
  OrtMemoryInfoDeviceType_CPU = 0,
  OrtMemoryInfoDeviceType_GPU = 1,
  OrtMemoryInfoDeviceType_FPGA = 2,
  OrtMemoryInfoDeviceType_NPU = 3
} OrtMemoryInfoDeviceType;
typedef enum OrtHardwareDeviceType {
  OrtHardwareDeviceType_CPU = 0,
  OrtHardwareDeviceType_GPU = 1,
  OrtHardwareDeviceType_NPU = 2
} OrtHardwareDeviceType;
typedef enum OrtExecutionProviderDevicePolicy {
  OrtExecutionProviderDevicePolicy_DEFAULT = 0,
  OrtExecutionProviderDevicePolicy_PREFER_CPU = 1,
  OrtExecutionProviderDevicePolicy_PREFER_NPU = 2,
  OrtExecutionProviderDevicePolicy_PREFER_GPU = 3,
  OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE = 4,
  OrtExecutionProviderDevicePolicy_MAX_EFFICIENCY = 5,
  OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER = 6
} OrtExecutionProviderDevicePolicy;
typedef enum OrtLanguageProjection {
  ORT_PROJECTION_C = 0,
  ORT_PROJECTION_CPLUSPLUS = 1,
  ORT_PROJECTION_CSHARP = 2,
  ORT_PROJECTION_PYTHON = 3,
  ORT_PROJECTION_JAVA = 4,
  ORT_PROJECTION_WINML = 5,
  ORT_PROJECTION_NODEJS = 6
} OrtLanguageProjection;
typedef enum OrtCudnnConvAlgoSearch {
  OrtCudnnConvAlgoSearchExhaustive = 0,
  OrtCudnnConvAlgoSearchHeuristic = 1,
  OrtCudnnConvAlgoSearchDefault = 2
} OrtCudnnConvAlgoSearch;

typedef void (*OrtLoggingFunction)(void* param, OrtLoggingLevel severity, const char* category, const char* logid,
                                   const char* code_location, const char* message);
typedef void (*RunAsyncCallbackFn)(void* user_data, OrtValue** outputs, size_t num_outputs, OrtStatusPtr status);

/* Memory that a program gives: members after Info are called from version 18 on. */
struct OrtAllocator {
  uint32_t version;
  void* (*Alloc)(OrtAllocator* self, size_t size);
  void (*Free)(OrtAllocator* self, void* p);
  const OrtMemoryInfo* (*Info)(const OrtAllocator* self);
  void* (*Reserve)(OrtAllocator* self, size_t size);
  OrtStatusPtr (*GetStats)(const OrtAllocator* self, OrtKeyValuePairs** out);
  void* (*AllocOnStream)(OrtAllocator* self, size_t size, void* stream);
};

/* Options of the provider of MIGraphX. The struct has no version: this is its layout in ONNX Runtime 1.19 and later.
   Set it to zeros before its members. */
typedef struct OrtMIGraphXProviderOptions {
  int device_id;
  int migraphx_fp16_enable;
  int migraphx_fp8_enable;
  int migraphx_int8_enable;
  int migraphx_use_native_calibration_table;
  const char* migraphx_int8_calibration_table_name;
  int migraphx_save_compiled_model;
  const char* migraphx_save_model_path;
  int migraphx_load_compiled_model;
  const char* migraphx_load_model_path;
  bool migraphx_exhaustive_tune;
  size_t migraphx_mem_limit;          /* bytes; 0 and SIZE_MAX: none */
  int migraphx_arena_extend_strategy; /* 0: the next power of two, 1: as asked for */
} OrtMIGraphXProviderOptions;

typedef struct OrtCUDAProviderOptions {
#ifdef __cplusplus
  int device_id = 0;
  OrtCudnnConvAlgoSearch cudnn_conv_algo_search = OrtCudnnConvAlgoSearchExhaustive;
  size_t gpu_mem_limit = SIZE_MAX;
  int arena_extend_strategy = 0, do_copy_in_default_stream = 1, has_user_compute_stream = 0;
  void* user_compute_stream = nullptr;
  OrtArenaCfg* default_memory_arena_cfg = nullptr;
  int tunable_op_enable = 0, tunable_op_tuning_enable = 0, tunable_op_max_tuning_duration_ms = 0;
#else
  int device_id;
  OrtCudnnConvAlgoSearch cudnn_conv_algo_search;
  size_t gpu_mem_limit;
  int arena_extend_strategy, do_copy_in_default_stream, has_user_compute_stream;
  void* user_compute_stream;
  OrtArenaCfg* default_memory_arena_cfg;
  int tunable_op_enable, tunable_op_tuning_enable, tunable_op_max_tuning_duration_ms;
#endif
} OrtCUDAProviderOptions;

#ifdef __cplusplus
}
#endif
#endif
