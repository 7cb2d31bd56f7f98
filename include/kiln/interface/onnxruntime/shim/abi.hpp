#pragma once
#include "kiln/interface/onnxruntime/abi.hpp"

// What the shim adds to the facts of abi.hpp: the functions that it stands in front of.

extern "C" {
struct OrtEnvCreationOptions;
struct OrtThreadingOptions;

/// Options of MIGraphX's provider as a struct: the layout of ONNX Runtime 1.19 and later, which has no version field.
struct OrtMIGraphXProviderOptions {
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
  std::size_t migraphx_mem_limit;
  int migraphx_arena_extend_strategy;
};

using OrtLoggingFunction = void (*)(void* param, kiln::onnxruntime::severity, const char* category, const char* logid,
                                    const char* code_location, const char* message);
}

static_assert(offsetof(OrtMIGraphXProviderOptions, migraphx_int8_calibration_table_name) == 24);
static_assert(offsetof(OrtMIGraphXProviderOptions, migraphx_exhaustive_tune) == 64);
static_assert(sizeof(OrtMIGraphXProviderOptions) == 88);

namespace kiln::onnxruntime::api {

inline constexpr slot<4, OrtStatus*(OrtLoggingFunction, void*, severity, const char*, OrtEnv**)> create_env_with_logger;
inline constexpr slot<119, OrtStatus*(severity, const char*, const OrtThreadingOptions*, OrtEnv**)>
    create_env_with_threads;
inline constexpr slot<125, OrtStatus*(char***, int*)> available_providers;
inline constexpr slot<126, OrtStatus*(char**, int)> release_available_providers;
inline constexpr slot<151, OrtStatus*(OrtLoggingFunction, void*, severity, const char*, const OrtThreadingOptions*,
                                      OrtEnv**)>
    create_env_with_logger_and_threads;
inline constexpr slot<209, OrtStatus*(OrtSessionOptions*, const OrtMIGraphXProviderOptions*)> append_migraphx;
inline constexpr slot<216, OrtStatus*(OrtSessionOptions*, const char* name, const char* const* keys,
                                      const char* const* values, std::size_t)>
    append_by_name;
inline constexpr slot<219, const void*(std::uint32_t)> training_api;
inline constexpr slot<226, OrtStatus*(OrtEnv*, severity)> set_env_log_level;
inline constexpr slot<254, const char*()> build_info;
inline constexpr slot<294, const void* const*()> compile_api;
inline constexpr slot<406, OrtStatus*(const OrtEnvCreationOptions*, OrtEnv**)> create_env_with_options;

}  // namespace kiln::onnxruntime::api
