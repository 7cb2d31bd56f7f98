// kiln's header of ONNX Runtime puts its functions where the plugin's declarations have them.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <onnxruntime_c_api.h>

namespace plugin {
#include "kiln/interface/onnxruntime/shim/abi.hpp"
}

namespace {

namespace api = plugin::kiln::onnxruntime::api;
template <std::size_t Index, class F> constexpr std::size_t place(plugin::kiln::onnxruntime::slot<Index, F>) {
  return Index * sizeof(void*);
}
template <class> inline constexpr std::size_t arguments = 0;
template <class R, class... Args> inline constexpr std::size_t arguments<R(Args...)> = sizeof...(Args);
template <class R, class... Args> inline constexpr std::size_t arguments<R (*)(Args...)> = sizeof...(Args);
template <std::size_t Index, class F> constexpr std::size_t arguments_of(plugin::kiln::onnxruntime::slot<Index, F>) {
  return arguments<F>;
}

#define SAME(own, name)                                     \
  static_assert(offsetof(OrtApi, name) == place(api::own)); \
  static_assert(arguments<decltype(OrtApi::name)> == arguments_of(api::own))

SAME(create_status, CreateStatus);
SAME(status_message, GetErrorMessage);
SAME(create_env, CreateEnv);
SAME(create_env_with_logger, CreateEnvWithCustomLogger);
SAME(create_session, CreateSession);
SAME(create_session_from_array, CreateSessionFromArray);
SAME(run, Run);
SAME(create_session_options, CreateSessionOptions);
SAME(set_intra_op_threads, SetIntraOpNumThreads);
SAME(session_input_count, SessionGetInputCount);
SAME(session_output_name, SessionGetOutputName);
SAME(tensor_of_data, CreateTensorWithDataAsOrtValue);
SAME(tensor_data, GetTensorMutableData);
SAME(value_type_of, GetOnnxTypeFromTypeInfo);
SAME(extent_names, GetSymbolicDimensions);
SAME(tensor_info_of_value, GetTensorTypeAndShape);
SAME(value_type_of_value, GetValueType);
SAME(cpu_memory, CreateCpuMemoryInfo);
SAME(free, AllocatorFree);
SAME(default_allocator, GetAllocatorWithDefaultOptions);
SAME(release_env, ReleaseEnv);
SAME(release_status, ReleaseStatus);
SAME(release_value, ReleaseValue);
SAME(release_tensor_info, ReleaseTensorTypeAndShapeInfo);
SAME(release_session_options, ReleaseSessionOptions);
SAME(create_env_with_threads, CreateEnvWithGlobalThreadPools);
SAME(available_providers, GetAvailableProviders);
SAME(release_available_providers, ReleaseAvailableProviders);
SAME(add_session_entry, AddSessionConfigEntry);
SAME(create_env_with_logger_and_threads, CreateEnvWithCustomLoggerAndGlobalThreadPools);
SAME(append_migraphx, SessionOptionsAppendExecutionProvider_MIGraphX);
SAME(append_by_name, SessionOptionsAppendExecutionProvider);
SAME(set_env_log_level, UpdateEnvWithCustomLogLevel);
SAME(build_info, GetBuildInfoString);
SAME(model_editor_api, GetModelEditorApi);
SAME(compile_api, GetCompileApi);
SAME(create_pairs, CreateKeyValuePairs);
SAME(pairs_of, GetKeyValuePairs);
SAME(release_pairs, ReleaseKeyValuePairs);
SAME(register_library, RegisterExecutionProviderLibrary);
SAME(unregister_library, UnregisterExecutionProviderLibrary);
SAME(ep_devices, GetEpDevices);
SAME(append_provider, SessionOptionsAppendExecutionProvider_V2);
SAME(hardware_type, HardwareDevice_Type);
SAME(device_ep_name, EpDevice_EpName);
SAME(ep_api, GetEpApi);
SAME(session_entries, GetSessionOptionsConfigEntries);
SAME(has_rank, TensorTypeAndShape_HasShape);
SAME(assigned_subgraphs, Session_GetEpGraphAssignmentInfo);
SAME(assigned_ep, EpAssignedSubgraph_GetEpName);
SAME(assigned_nodes, EpAssignedSubgraph_GetNodes);

using own = plugin::OrtMIGraphXProviderOptions;
static_assert(sizeof(OrtMIGraphXProviderOptions) == sizeof(own));
static_assert(offsetof(OrtMIGraphXProviderOptions, migraphx_save_model_path) ==
              offsetof(own, migraphx_save_model_path));
static_assert(offsetof(OrtMIGraphXProviderOptions, migraphx_mem_limit) == offsetof(own, migraphx_mem_limit));
static_assert(offsetof(OrtMIGraphXProviderOptions, migraphx_arena_extend_strategy) ==
              offsetof(own, migraphx_arena_extend_strategy));

}  // namespace

int main() {}
