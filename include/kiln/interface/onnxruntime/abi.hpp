#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

// ONNX Runtime's C interface as facts: the objects it hands out, the structs that a plugin fills, and where each
// function stands in its tables. Tables are append-only, so that a slot never changes; names are those of
// onnxruntime_c_api.h and onnxruntime_ep_c_api.h (API version 24, in 1.24 and later).

extern "C" {
struct OrtAllocator;
struct OrtDataTransferImpl;
struct OrtEnv;
struct OrtEpAssignedNode;
struct OrtEpAssignedSubgraph;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtExternalInitializerInfo;
struct OrtGraph;
struct OrtHardwareDevice;
struct OrtKernelContext;
struct OrtKernelRegistry;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtMemoryInfo;
struct OrtNode;
struct OrtNodeComputeContext;
struct OrtOpAttr;
struct OrtProfilingEvent;
struct OrtProfilingEventsContainer;
struct OrtRunOptions;
struct OrtSession;
struct OrtSessionOptions;
struct OrtStatus;
struct OrtSyncStreamImpl;
struct OrtTensorTypeAndShapeInfo;
struct OrtTypeInfo;
struct OrtValue;
struct OrtValueInfo;
struct OrtMemoryDevice;

struct OrtApiBase {
  const void* const* (*GetApi)(std::uint32_t version);
  const char* (*GetVersionString)();
};

struct OrtNodeFusionOptions {
  std::uint32_t ort_version_supported;
  bool drop_constant_initializers;
  std::uint64_t later[4];  // members that later versions append
};

struct OrtNodeComputeInfo {
  std::uint32_t ort_version_supported;
  OrtStatus* (*CreateState)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state);
  OrtStatus* (*Compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*);
  void (*ReleaseState)(OrtNodeComputeInfo*, void* state);
  void* later[4];
};

// Since 1.25.
struct OrtEpProfilerImpl {
  std::uint32_t ort_version_supported;
  void (*Release)(OrtEpProfilerImpl*);
  OrtStatus* (*StartProfiling)(OrtEpProfilerImpl*, std::int64_t offset_ns);
  OrtStatus* (*StartEvent)(OrtEpProfilerImpl*, std::uint64_t event);
  OrtStatus* (*StopEvent)(OrtEpProfilerImpl*, std::uint64_t event, const OrtProfilingEvent*);
  OrtStatus* (*EndProfiling)(OrtEpProfilerImpl*, OrtProfilingEventsContainer*);
  void* later[4];
};

struct OrtEp {
  std::uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEp*);
  OrtStatus* (*GetCapability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*);
  OrtStatus* (*Compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused, std::size_t count,
                        OrtNodeComputeInfo** infos, OrtNode** context_nodes);
  void (*ReleaseNodeComputeInfos)(OrtEp*, OrtNodeComputeInfo** infos, std::size_t count);
  void* GetPreferredDataLayout;
  void* ShouldConvertDataLayoutForOp;
  void* SetDynamicOptions;
  void* OnRunStart;
  void* OnRunEnd;
  OrtStatus* (*CreateAllocator)(OrtEp*, const OrtMemoryInfo*, OrtAllocator**);
  void* CreateSyncStreamForDevice;
  const char* (*GetCompiledModelCompatibilityInfo)(OrtEp*, const OrtGraph*);
  OrtStatus* (*GetKernelRegistry)(OrtEp*, const OrtKernelRegistry**);
  OrtStatus* (*IsConcurrentRunSupported)(OrtEp*, bool* is_supported);
  void* Sync;  // this and what follows: since 1.25
  OrtStatus* (*CreateProfiler)(OrtEp*, OrtEpProfilerImpl**);
  void* of_graph_capture[6];                                                    // since 1.26 and 1.27
  OrtStatus* (*GetDefaultMemoryDevice)(const OrtEp*, const OrtMemoryDevice**);  // since 1.27
  void* later[8];
};

struct OrtEpFactory {
  std::uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEpFactory*);
  const char* (*GetVendor)(const OrtEpFactory*);
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory*, const OrtHardwareDevice* const* devices, std::size_t count,
                                    OrtEpDevice** ep_devices, std::size_t most, std::size_t* made);
  OrtStatus* (*CreateEp)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                         const OrtKeyValuePairs* const* metadata, std::size_t count, const OrtSessionOptions*,
                         const OrtLogger*, OrtEp**);
  void (*ReleaseEp)(OrtEpFactory*, OrtEp*);
  std::uint32_t (*GetVendorId)(const OrtEpFactory*);
  const char* (*GetVersion)(const OrtEpFactory*);
  OrtStatus* (*ValidateCompiledModelCompatibilityInfo)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                                                       std::size_t count, const char* info, int* compatibility);
  OrtStatus* (*CreateAllocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*, OrtAllocator**);
  void (*ReleaseAllocator)(OrtEpFactory*, OrtAllocator*);
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory*, OrtDataTransferImpl**);
  bool (*IsStreamAware)(const OrtEpFactory*);
  OrtStatus* (*CreateSyncStreamForDevice)(OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                                          OrtSyncStreamImpl**);
  void* later[12];
};
}

static_assert(std::is_standard_layout_v<OrtEp> && std::is_standard_layout_v<OrtEpFactory>);
static_assert(offsetof(OrtEp, Compile) == 3 * sizeof(void*));
static_assert(offsetof(OrtEp, GetCompiledModelCompatibilityInfo) == 12 * sizeof(void*));
static_assert(offsetof(OrtEp, IsConcurrentRunSupported) == 14 * sizeof(void*));
static_assert(offsetof(OrtEp, GetKernelRegistry) == 13 * sizeof(void*));
static_assert(offsetof(OrtEp, CreateProfiler) == 16 * sizeof(void*));
static_assert(offsetof(OrtEp, GetDefaultMemoryDevice) == 23 * sizeof(void*));
static_assert(offsetof(OrtEpProfilerImpl, EndProfiling) == 5 * sizeof(void*));
static_assert(offsetof(OrtEpFactory, ValidateCompiledModelCompatibilityInfo) == 8 * sizeof(void*));
static_assert(offsetof(OrtEpFactory, CreateSyncStreamForDevice) == 13 * sizeof(void*));
static_assert(offsetof(OrtNodeComputeInfo, ReleaseState) == 3 * sizeof(void*));
static_assert(offsetof(OrtNodeFusionOptions, drop_constant_initializers) == sizeof(std::uint32_t));

namespace kiln::onnxruntime {

/// The API version that kiln asks for at least, and stamps into the structs it fills but for those that profile.
inline constexpr std::uint32_t api_version = 24;
/// The first with profiling of plugins.
inline constexpr std::uint32_t profiling_version = 25;
/// The first in which a provider says itself where its tensors lie.
inline constexpr std::uint32_t default_memory_version = 27;

/// ONNX Runtime's codes of a status.
enum class status_code : int {
  ok = 0,
  fail = 1,
  invalid_argument = 2,
  no_such_file = 3,
  runtime_exception = 6,
  not_implemented = 9,
  invalid_graph = 10,
  ep_fail = 11,
};

/// What a value is (ONNXType).
enum class value_type : int {
  unknown = 0,
  tensor = 1,
  sequence = 2,
  map = 3,
  opaque = 4,
  sparse_tensor = 5,
  optional = 6
};

/// What an attribute holds (OrtOpAttrType).
enum class attribute_type : int {
  undefined = 0,
  integer = 1,
  integers = 2,
  real = 3,
  reals = 4,
  text = 5,
  texts = 6,
  graph = 7,
  tensor = 8,
};

/// Kinds of hardware (OrtHardwareDeviceType) and severities of log lines (OrtLoggingLevel).
enum class hardware : int { cpu = 0, gpu = 1, npu = 2 };
enum class severity : int { verbose = 0, info = 1, warning = 2, error = 3, fatal = 4 };

/// Whether a compiled model runs (OrtCompiledModelCompatibility).
enum class compatibility : int { not_applicable = 0, optimal = 1, prefer_recompilation = 2, unsupported = 3 };

/// A function of a table: where it stands, and what it takes.
template <std::size_t Index, class Function> struct slot {};

/// Functions of the main table (OrtApi).
namespace api {
inline constexpr slot<0, OrtStatus*(status_code, const char*)> create_status;
inline constexpr slot<1, status_code(const OrtStatus*)> status_code_of;
inline constexpr slot<2, const char*(const OrtStatus*)> status_message;
inline constexpr slot<3, OrtStatus*(severity, const char*, OrtEnv**)> create_env;
inline constexpr slot<4, OrtStatus*(void (*line)(void* with, severity, const char* category, const char* id,
                                                 const char* place, const char* message),
                                    void* with, severity, const char* id, OrtEnv**)>
    create_env_with_log;
inline constexpr slot<7, OrtStatus*(const OrtEnv*, const char* path, const OrtSessionOptions*, OrtSession**)>
    create_session;
inline constexpr slot<8, OrtStatus*(const OrtEnv*, const void*, std::size_t, const OrtSessionOptions*, OrtSession**)>
    create_session_from_array;
inline constexpr slot<9, OrtStatus*(OrtSession*, const OrtRunOptions*, const char* const* names,
                                    const OrtValue* const* inputs, std::size_t, const char* const* output_names,
                                    std::size_t, OrtValue** outputs)>
    run;
inline constexpr slot<10, OrtStatus*(OrtSessionOptions**)> create_session_options;
inline constexpr slot<14, OrtStatus*(OrtSessionOptions*, const char* prefix)> enable_profiling;
inline constexpr slot<22, OrtStatus*(OrtSessionOptions*, severity)> set_log_severity;
inline constexpr slot<24, OrtStatus*(OrtSessionOptions*, int)> set_intra_op_threads;
inline constexpr slot<30, OrtStatus*(const OrtSession*, std::size_t*)> session_input_count;
inline constexpr slot<31, OrtStatus*(const OrtSession*, std::size_t*)> session_output_count;
inline constexpr slot<36, OrtStatus*(const OrtSession*, std::size_t, OrtAllocator*, char**)> session_input_name;
inline constexpr slot<37, OrtStatus*(const OrtSession*, std::size_t, OrtAllocator*, char**)> session_output_name;
inline constexpr slot<49, OrtStatus*(const OrtMemoryInfo*, void*, std::size_t, const std::int64_t*, std::size_t, int,
                                     OrtValue**)>
    tensor_of_data;
inline constexpr slot<51, OrtStatus*(OrtValue*, void**)> tensor_data;
inline constexpr slot<55, OrtStatus*(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**)> tensor_info_of_type;
inline constexpr slot<56, OrtStatus*(const OrtTypeInfo*, value_type*)> value_type_of;
inline constexpr slot<60, OrtStatus*(const OrtTensorTypeAndShapeInfo*, int*)> element_type;
inline constexpr slot<61, OrtStatus*(const OrtTensorTypeAndShapeInfo*, std::size_t*)> rank;
inline constexpr slot<62, OrtStatus*(const OrtTensorTypeAndShapeInfo*, std::int64_t*, std::size_t)> extents;
inline constexpr slot<63, OrtStatus*(const OrtTensorTypeAndShapeInfo*, const char**, std::size_t)> extent_names;
inline constexpr slot<65, OrtStatus*(const OrtValue*, OrtTensorTypeAndShapeInfo**)> tensor_info_of_value;
inline constexpr slot<67, OrtStatus*(const OrtValue*, value_type*)> value_type_of_value;
inline constexpr slot<69, OrtStatus*(int allocator_type, int memory_type, OrtMemoryInfo**)> cpu_memory;
inline constexpr slot<76, OrtStatus*(OrtAllocator*, void*)> free;
inline constexpr slot<78, OrtStatus*(OrtAllocator**)> default_allocator;
inline constexpr slot<88, OrtStatus*(const OrtKernelContext*, std::size_t*)> kernel_input_count;
inline constexpr slot<89, OrtStatus*(const OrtKernelContext*, std::size_t*)> kernel_output_count;
inline constexpr slot<90, OrtStatus*(const OrtKernelContext*, std::size_t, const OrtValue**)> kernel_input;
inline constexpr slot<91, OrtStatus*(OrtKernelContext*, std::size_t, const std::int64_t*, std::size_t, OrtValue**)>
    kernel_output;
inline constexpr slot<92, void(OrtEnv*)> release_env;
inline constexpr slot<93, void(OrtStatus*)> release_status;
inline constexpr slot<94, void(OrtMemoryInfo*)> release_memory_info;
inline constexpr slot<95, void(OrtSession*)> release_session;
inline constexpr slot<96, void(OrtValue*)> release_value;
inline constexpr slot<99, void(OrtTensorTypeAndShapeInfo*)> release_tensor_info;
inline constexpr slot<100, void(OrtSessionOptions*)> release_session_options;
inline constexpr slot<130, OrtStatus*(OrtSessionOptions*, const char* key, const char* value)> add_session_entry;
inline constexpr slot<211, OrtStatus*(const char* name, const void* data, int size, attribute_type, OrtOpAttr**)>
    create_attribute;
inline constexpr slot<247, OrtStatus*(const OrtLogger*, severity, const char* message, const char* file, int line,
                                      const char* function)>
    log_message;
inline constexpr slot<248, OrtStatus*(const OrtLogger*, severity*)> log_severity;
inline constexpr slot<272, OrtStatus*(const OrtOpAttr*, attribute_type, void*, std::size_t, std::size_t*)>
    read_attribute;
inline constexpr slot<289, OrtStatus*(const OrtValueInfo*, const char**)> value_name;
inline constexpr slot<290, OrtStatus*(const OrtValueInfo*, const OrtTypeInfo**)> value_type_info;
inline constexpr slot<291, const void* const*()> model_editor_api;
inline constexpr slot<295, void(OrtKeyValuePairs**)> create_pairs;
inline constexpr slot<296, void(OrtKeyValuePairs*, const char*, const char*)> add_pair;
inline constexpr slot<298, void(const OrtKeyValuePairs*, const char* const**, const char* const**, std::size_t*)>
    pairs_of;
inline constexpr slot<300, void(OrtKeyValuePairs*)> release_pairs;
inline constexpr slot<301, OrtStatus*(OrtEnv*, const char* name, const char* path)> register_library;
inline constexpr slot<302, OrtStatus*(OrtEnv*, const char* name)> unregister_library;
inline constexpr slot<303, OrtStatus*(const OrtEnv*, const OrtEpDevice* const**, std::size_t*)> ep_devices;
inline constexpr slot<304, OrtStatus*(OrtSessionOptions*, OrtEnv*, const OrtEpDevice* const*, std::size_t,
                                      const char* const* keys, const char* const* values, std::size_t)>
    append_provider;
inline constexpr slot<307, hardware(const OrtHardwareDevice*)> hardware_type;
inline constexpr slot<312, const char*(const OrtEpDevice*)> device_ep_name;
inline constexpr slot<317, const void* const*()> ep_api;
inline constexpr slot<326, OrtStatus*(const OrtValueInfo*, const OrtValue**)> initializer_value;
inline constexpr slot<327, OrtStatus*(const OrtValueInfo*, OrtExternalInitializerInfo**)> external_initializer;
inline constexpr slot<331, OrtStatus*(const OrtValueInfo*, bool*)> is_constant;
inline constexpr slot<333, OrtStatus*(const OrtGraph*, const char**)> graph_name;
inline constexpr slot<334, OrtStatus*(const OrtGraph*, const char**)> graph_model_path;
inline constexpr slot<335, OrtStatus*(const OrtGraph*, std::int64_t*)> graph_ir_version;
inline constexpr slot<336, OrtStatus*(const OrtGraph*, std::size_t*)> operator_set_count;
inline constexpr slot<337, OrtStatus*(const OrtGraph*, const char**, std::int64_t*, std::size_t)> operator_sets;
inline constexpr slot<338, OrtStatus*(const OrtGraph*, std::size_t*)> graph_input_count;
inline constexpr slot<339, OrtStatus*(const OrtGraph*, const OrtValueInfo**, std::size_t)> graph_inputs;
inline constexpr slot<340, OrtStatus*(const OrtGraph*, std::size_t*)> graph_output_count;
inline constexpr slot<341, OrtStatus*(const OrtGraph*, const OrtValueInfo**, std::size_t)> graph_outputs;
inline constexpr slot<342, OrtStatus*(const OrtGraph*, std::size_t*)> initializer_count;
inline constexpr slot<343, OrtStatus*(const OrtGraph*, const OrtValueInfo**, std::size_t)> initializers;
inline constexpr slot<344, OrtStatus*(const OrtGraph*, std::size_t*)> node_count;
inline constexpr slot<345, OrtStatus*(const OrtGraph*, const OrtNode**, std::size_t)> nodes;
inline constexpr slot<346, OrtStatus*(const OrtGraph*, const OrtNode**)> parent_node;
inline constexpr slot<348, OrtStatus*(const OrtNode*, std::size_t*)> node_id;
inline constexpr slot<349, OrtStatus*(const OrtNode*, const char**)> node_name;
inline constexpr slot<350, OrtStatus*(const OrtNode*, const char**)> node_operator;
inline constexpr slot<351, OrtStatus*(const OrtNode*, const char**)> node_domain;
inline constexpr slot<353, OrtStatus*(const OrtNode*, std::size_t*)> node_input_count;
inline constexpr slot<354, OrtStatus*(const OrtNode*, const OrtValueInfo**, std::size_t)> node_inputs;
inline constexpr slot<355, OrtStatus*(const OrtNode*, std::size_t*)> node_output_count;
inline constexpr slot<356, OrtStatus*(const OrtNode*, const OrtValueInfo**, std::size_t)> node_outputs;
inline constexpr slot<357, OrtStatus*(const OrtNode*, std::size_t*)> implicit_input_count;
inline constexpr slot<358, OrtStatus*(const OrtNode*, const OrtValueInfo**, std::size_t)> implicit_inputs;
inline constexpr slot<359, OrtStatus*(const OrtNode*, std::size_t*)> attribute_count;
inline constexpr slot<360, OrtStatus*(const OrtNode*, const OrtOpAttr**, std::size_t)> attributes;
inline constexpr slot<362, OrtStatus*(const OrtOpAttr*, OrtValue**)> attribute_tensor;
inline constexpr slot<363, OrtStatus*(const OrtOpAttr*, attribute_type*)> attribute_type_of;
inline constexpr slot<364, OrtStatus*(const OrtOpAttr*, const char**)> attribute_name;
inline constexpr slot<365, OrtStatus*(const OrtNode*, std::size_t*)> body_count;
inline constexpr slot<366, OrtStatus*(const OrtNode*, const OrtGraph**, std::size_t, const char**)> bodies;
inline constexpr slot<367, OrtStatus*(const OrtNode*, const OrtGraph**)> graph_of_node;
inline constexpr slot<369, void(OrtExternalInitializerInfo*)> release_external_initializer;
inline constexpr slot<370, const char*(const OrtExternalInitializerInfo*)> external_path;
inline constexpr slot<371, std::int64_t(const OrtExternalInitializerInfo*)> external_offset;
inline constexpr slot<372, std::size_t(const OrtExternalInitializerInfo*)> external_bytes;
inline constexpr slot<379, OrtStatus*(const OrtSessionOptions*, OrtKeyValuePairs**)> session_entries;
inline constexpr slot<390, bool(const OrtTensorTypeAndShapeInfo*)> has_rank;
inline constexpr slot<407, OrtStatus*(const OrtSession*, const OrtEpAssignedSubgraph* const**, std::size_t*)>
    assigned_subgraphs;
inline constexpr slot<408, OrtStatus*(const OrtEpAssignedSubgraph*, const char**)> assigned_ep;
inline constexpr slot<409, OrtStatus*(const OrtEpAssignedSubgraph*, const OrtEpAssignedNode* const**, std::size_t*)>
    assigned_nodes;
/// Element type and extents of a tensor; the extents are the tensor's own.
inline constexpr slot<414, OrtStatus*(const OrtValue*, int*, const std::int64_t**, std::size_t*)> tensor_type;
}  // namespace api

/// Functions of the plugins' table (OrtEpApi).
namespace ep_api {
inline constexpr slot<0, OrtStatus*(OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs* metadata,
                                    const OrtKeyValuePairs* options, OrtEpDevice**)>
    create_device;
inline constexpr slot<2, OrtStatus*(OrtEpGraphSupportInfo*, const OrtNode* const*, std::size_t,
                                    const OrtNodeFusionOptions*)>
    add_nodes_to_fuse;
/// Since 1.25: an event, whose category 2 is a kernel's, and how ONNX Runtime gets a copy of it.
inline constexpr slot<65, OrtStatus*(int category, std::int32_t process, std::int32_t thread, const char* name,
                                     std::int64_t begin_us, std::int64_t us, const char* const* keys,
                                     const char* const* values, std::size_t, OrtProfilingEvent**)>
    create_event;
inline constexpr slot<66, void(OrtProfilingEvent*)> release_event;
inline constexpr slot<72, OrtStatus*(OrtProfilingEventsContainer*, const OrtProfilingEvent* const*, std::size_t)>
    add_events;
}  // namespace ep_api

/// Functions of the table that makes graphs (OrtModelEditorApi).
namespace editor_api {
/// Takes the attributes over.
inline constexpr slot<6, OrtStatus*(const char* op, const char* domain, const char* name, const char* const* inputs,
                                    std::size_t, const char* const* outputs, std::size_t, OrtOpAttr** attributes,
                                    std::size_t, OrtNode**)>
    create_node;
}  // namespace editor_api

}  // namespace kiln::onnxruntime
