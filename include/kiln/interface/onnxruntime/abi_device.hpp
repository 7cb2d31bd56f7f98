#pragma once
#include "kiln/interface/onnxruntime/abi.hpp"

// The part of ONNX Runtime's C interface that concerns a device's memory, as abi.hpp says: allocators, copies, streams,
// and the kernels that copy between providers.

extern "C" {
struct OrtKernelDef;
struct OrtKernelDefBuilder;
struct OrtKernelInfo;
struct OrtKernelRegistry;
struct OrtSyncStream;

struct OrtAllocator {
  std::uint32_t version;
  void* (*Alloc)(OrtAllocator*, std::size_t);
  void (*Free)(OrtAllocator*, void*);
  const OrtMemoryInfo* (*Info)(const OrtAllocator*);
  void* (*Reserve)(OrtAllocator*, std::size_t);
  OrtStatus* (*GetStats)(const OrtAllocator*, OrtKeyValuePairs**);
  void* (*AllocOnStream)(OrtAllocator*, std::size_t, OrtSyncStream*);
  OrtStatus* (*Shrink)(OrtAllocator*);  // since 1.25
  void* later[4];
};

struct OrtDataTransferImpl {
  std::uint32_t ort_version_supported;
  void (*Release)(OrtDataTransferImpl*);
  bool (*CanCopy)(const OrtDataTransferImpl*, const OrtMemoryDevice* from, const OrtMemoryDevice* to);
  OrtStatus* (*CopyTensors)(OrtDataTransferImpl*, const OrtValue** from, OrtValue** to, OrtSyncStream** streams,
                            std::size_t count);
  void* later[4];
};

struct OrtSyncNotificationImpl {
  std::uint32_t ort_version_supported;
  void (*Release)(OrtSyncNotificationImpl*);
  OrtStatus* (*Activate)(OrtSyncNotificationImpl*);
  OrtStatus* (*WaitOnDevice)(OrtSyncNotificationImpl*, OrtSyncStream* consumer);
  OrtStatus* (*WaitOnHost)(OrtSyncNotificationImpl*);
  void* later[4];
};

struct OrtSyncStreamImpl {
  std::uint32_t ort_version_supported;
  void (*Release)(OrtSyncStreamImpl*);
  void* (*GetHandle)(OrtSyncStreamImpl*);
  OrtStatus* (*CreateNotification)(OrtSyncStreamImpl*, OrtSyncNotificationImpl**);
  OrtStatus* (*Flush)(OrtSyncStreamImpl*);
  OrtStatus* (*OnSessionRunEnd)(OrtSyncStreamImpl*);
  void* later[4];
};

struct OrtKernelImpl {
  std::uint32_t ort_version_supported;
  OrtStatus* (*Compute)(OrtKernelImpl*, OrtKernelContext*);
  void (*Release)(OrtKernelImpl*);
  void* later[4];
};
}

static_assert(offsetof(OrtAllocator, Shrink) == 7 * sizeof(void*));
static_assert(offsetof(OrtDataTransferImpl, CopyTensors) == 3 * sizeof(void*));
static_assert(offsetof(OrtSyncNotificationImpl, WaitOnHost) == 4 * sizeof(void*));
static_assert(offsetof(OrtSyncStreamImpl, OnSessionRunEnd) == 5 * sizeof(void*));
static_assert(offsetof(OrtKernelImpl, Release) == 2 * sizeof(void*));

namespace kiln::onnxruntime {

/// Kinds of a device's memory (OrtDeviceMemoryType), and where a kernel's tensor lies (OrtMemType).
enum class memory_type : int { of_device = 0, host_accessible = 5 };
enum class kernel_memory : int { cpu_input = -2, cpu_output = -1 };

namespace api {
/// The stream that ONNX Runtime runs a node on; null where it has none.
inline constexpr slot<193, OrtStatus*(const OrtKernelContext*, void**)> kernel_stream;
inline constexpr slot<308, std::uint32_t(const OrtHardwareDevice*)> hardware_vendor;
inline constexpr slot<320, OrtStatus*(const char* name, hardware, std::uint32_t vendor, std::int32_t device,
                                      memory_type, std::size_t alignment, int allocator_type, OrtMemoryInfo**)>
    create_memory_info;
}  // namespace api

namespace ep_api {
inline constexpr slot<5, OrtStatus*(OrtEpDevice*, const OrtMemoryInfo*)> add_allocator;
inline constexpr slot<6, const OrtMemoryDevice*(const OrtMemoryInfo*)> device_of_memory;
inline constexpr slot<7, const OrtMemoryDevice*(const OrtValue*)> device_of_value;
inline constexpr slot<8, bool(const OrtMemoryDevice*, const OrtMemoryDevice*)> same_device;
inline constexpr slot<9, hardware(const OrtMemoryDevice*)> memory_hardware;
inline constexpr slot<10, memory_type(const OrtMemoryDevice*)> memory_type_of;
inline constexpr slot<13, const OrtSyncStreamImpl*(const OrtSyncStream*)> stream_impl;
inline constexpr slot<16, OrtStatus*(hardware, std::uint32_t vendor, std::uint32_t device, const char* vendor_name,
                                     const OrtKeyValuePairs* metadata, OrtHardwareDevice**)>
    create_hardware;
inline constexpr slot<17, void(OrtHardwareDevice*)> release_hardware;
inline constexpr slot<18, OrtStatus*(OrtKernelRegistry**)> create_kernels;
inline constexpr slot<19, void(OrtKernelRegistry*)> release_kernels;
inline constexpr slot<20, OrtStatus*(OrtKernelRegistry*, const OrtKernelDef*,
                                     OrtStatus* (*make)(void* with, const OrtKernelInfo*, OrtKernelImpl**), void* with)>
    add_kernel;
inline constexpr slot<21, OrtStatus*(OrtKernelDefBuilder**)> create_definition;
inline constexpr slot<22, void(OrtKernelDefBuilder*)> release_builder;
inline constexpr slot<23, OrtStatus*(OrtKernelDefBuilder*, const char*)> set_operator;
inline constexpr slot<24, OrtStatus*(OrtKernelDefBuilder*, const char*)> set_domain;
inline constexpr slot<25, OrtStatus*(OrtKernelDefBuilder*, int first, int last)> set_versions;
inline constexpr slot<26, OrtStatus*(OrtKernelDefBuilder*, const char*)> set_provider;
inline constexpr slot<27, OrtStatus*(OrtKernelDefBuilder*, std::size_t input, kernel_memory)> set_input_memory;
inline constexpr slot<28, OrtStatus*(OrtKernelDefBuilder*, std::size_t output, kernel_memory)> set_output_memory;
inline constexpr slot<32, OrtStatus*(OrtKernelDefBuilder*, OrtKernelDef**)> build_definition;
inline constexpr slot<33, void(OrtKernelDef*)> release_definition;
}  // namespace ep_api

}  // namespace kiln::onnxruntime
