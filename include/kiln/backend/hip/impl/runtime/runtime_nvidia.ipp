#include <mutex>

#include "kiln/backend/hip/impl/runtime/library.hpp"

namespace kiln::hip {
namespace {

// The CUDA driver's calls, as far as they differ from HIP's in more than the name; a device address is an integer.
using address = unsigned long long;
struct driver {
  int (*cuDeviceGet)(int*, int) = nullptr;
  int (*cuDevicePrimaryCtxRetain)(void**, int) = nullptr;
  int (*cuCtxSetCurrent)(void*) = nullptr;
  int (*cuGetErrorString)(int, const char**) = nullptr;
  int (*cuMemAlloc_v2)(address*, std::size_t) = nullptr;
  int (*cuMemFree_v2)(address) = nullptr;
  int (*cuMemcpyAsync)(address, address, std::size_t, void*) = nullptr;
  int (*cuMemsetD8Async)(address, unsigned char, std::size_t, void*) = nullptr;
  int (*cuEventCreate)(void**, unsigned) = nullptr;
  int (*cuGraphInstantiateWithFlags)(void**, void*, unsigned long long) = nullptr;
  int (*cuPointerGetAttributes)(unsigned, int*, void**, address) = nullptr;
  int (*cuDeviceGetName)(char*, int, int) = nullptr;
  int (*cuDeviceGetAttribute)(int*, int, int) = nullptr;
  int (*cuDeviceTotalMem_v2)(std::size_t*, int) = nullptr;
  int (*cuLaunchKernelEx)(const struct launch_config*, void*, void**, void**) = nullptr;
  int (*cuOccupancyMaxActiveClusters)(int*, void*, const struct launch_config*) = nullptr;
  int (*cuTensorMapEncodeTiled)(void*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*,
                                const unsigned*, const unsigned*, int, int, int, int) = nullptr;
  int (*cuTensorMapEncodeIm2col)(void*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*, const int*,
                                 const int*, unsigned, unsigned, const unsigned*, int, int, int, int) = nullptr;
};
driver cu;

// CUlaunchConfig and CUlaunchAttribute, whose value is a union of 64 bytes.
struct launch_attribute {
  int id = 0, pad = 0;
  int value[16] = {};
};
struct launch_config {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  const launch_attribute* attributes;
  unsigned count;
};

int launch_chained(void* function, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared_bytes,
                   void* stream, void** arguments) {
  constexpr int programmatic_stream_serialization = 6;
  launch_attribute chained;
  chained.id = programmatic_stream_serialization;
  chained.value[0] = 1;
  const launch_config config{
      {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared_bytes, stream, &chained, 1};
  return cu.cuLaunchKernelEx(&config, function, arguments, nullptr);
}

int count_clusters(int* count, void* function, unsigned blocks, unsigned threads, unsigned shared_bytes) {
  constexpr int cluster_dimension = 4;
  launch_attribute together;
  together.id = cluster_dimension;
  together.value[0] = static_cast<int>(blocks), together.value[1] = together.value[2] = 1;
  const launch_config config{{blocks, 1, 1}, {threads, 1, 1}, shared_bytes, nullptr, &together, 1};
  return cu.cuOccupancyMaxActiveClusters(count, function, &config);
}

int map_tensor(void* map, const tensor_boxes& how) {
  // numbers of the driver's enumerations
  constexpr int byte = 0, half = 6, bfloat16 = 9, no_interleave = 0, swizzle_128_bytes = 3, promote_256_bytes = 3,
                zeros = 0;
  const int type = how.bytes ? byte : how.bfloat16 ? bfloat16 : half;
  const unsigned rank = static_cast<unsigned>(how.rank), box[] = {how.along, how.across, 1, 1};
  void* base = const_cast<void*>(how.base);
  if (how.mode == copy_mode::tiled)
    return cu.cuTensorMapEncodeTiled(map, type, rank, base, how.extents, how.step_bytes, box, how.stride, no_interleave,
                                     swizzle_128_bytes, promote_256_bytes, zeros);
  return cu.cuTensorMapEncodeIm2col(map, type, rank, base, how.extents, how.step_bytes, how.lower, how.upper, how.along,
                                    how.across, how.stride, no_interleave, swizzle_128_bytes, promote_256_bytes, zeros);
}

constexpr int most_devices = 64, no_such_device = 101;

int set_device(int index) {
  static std::mutex lock;
  static void* contexts[most_devices] = {};
  if (index < 0 || index >= most_devices) return no_such_device;
  const std::lock_guard guard(lock);
  if (!contexts[index]) {
    int device = 0;
    if (const int code = cu.cuDeviceGet(&device, index)) return code;
    if (const int code = cu.cuDevicePrimaryCtxRetain(&contexts[index], device)) return code;
  }
  return cu.cuCtxSetCurrent(contexts[index]);
}

const char* error_string(int code) {
  const char* words = nullptr;
  return cu.cuGetErrorString(code, &words) == 0 && words ? words : "unknown error";
}

bool is_device_memory(const void* at) {
  int memory_type = 2;  // the attribute; of its values, 2 is a device's
  unsigned kind = 0;
  void* to = &kind;
  // unlike the call for one attribute, this one takes an address that the driver does not know as no error
  return cu.cuPointerGetAttributes(1, &memory_type, &to, reinterpret_cast<address>(at)) == 0 && kind == 2;
}

void describe(int index, device_facts& out) {
  int device = 0;
  if (cu.cuDeviceGet(&device, index) != 0) return;
  const auto attribute = [&](int which) {
    int value = 0;
    cu.cuDeviceGetAttribute(&value, which, device);
    return value;
  };
  char name[256] = {};
  cu.cuDeviceGetName(name, sizeof name - 1, device);
  out.name = name;
  out.architecture = "sm_" + std::to_string(attribute(75)) + std::to_string(attribute(76));
  out.multiprocessors = attribute(16);
  out.lanes = attribute(10);
  out.shared_bytes = static_cast<std::size_t>(attribute(97));
  out.cache_bytes = static_cast<std::size_t>(attribute(38));
  cu.cuDeviceTotalMem_v2(&out.memory_bytes, device);
}

}  // namespace

std::unique_ptr<runtime_calls> open_nvidia_runtime() {
  library from({"libcuda.so.1"});
  if (!from) return nullptr;
  auto calls = std::make_unique<runtime_calls>();
  calls->on = platform::nvidia;
  calls->library = from.name();
#define KILN_CALL(name) from.find(cu.name, #name)
  KILN_CALL(cuDeviceGet);
  KILN_CALL(cuDevicePrimaryCtxRetain);
  KILN_CALL(cuCtxSetCurrent);
  KILN_CALL(cuGetErrorString);
  KILN_CALL(cuMemAlloc_v2);
  KILN_CALL(cuMemFree_v2);
  KILN_CALL(cuMemcpyAsync);
  KILN_CALL(cuMemsetD8Async);
  KILN_CALL(cuEventCreate);
  KILN_CALL(cuGraphInstantiateWithFlags);
  KILN_CALL(cuPointerGetAttributes);
  KILN_CALL(cuDeviceGetName);
  KILN_CALL(cuDeviceGetAttribute);
  KILN_CALL(cuDeviceTotalMem_v2);
  KILN_CALL(cuLaunchKernelEx);
  KILN_CALL(cuOccupancyMaxActiveClusters);
  KILN_CALL(cuTensorMapEncodeTiled);
  KILN_CALL(cuTensorMapEncodeIm2col);
#undef KILN_CALL
  from.find(calls->hipInit, "cuInit");
  from.find(calls->hipGetDeviceCount, "cuDeviceGetCount");
  from.find(calls->hipHostMalloc, "cuMemHostAlloc");
  from.find(calls->hipHostFree, "cuMemFreeHost");
  from.find(calls->hipStreamCreateWithFlags, "cuStreamCreate");
  from.find(calls->hipStreamDestroy, "cuStreamDestroy_v2");
  from.find(calls->hipStreamSynchronize, "cuStreamSynchronize");
  from.find(calls->hipStreamBeginCapture, "cuStreamBeginCapture_v2");
  from.find(calls->hipStreamEndCapture, "cuStreamEndCapture");
  from.find(calls->hipGraphLaunch, "cuGraphLaunch");
  from.find(calls->hipGraphDestroy, "cuGraphDestroy");
  from.find(calls->hipGraphExecDestroy, "cuGraphExecDestroy");
  from.find(calls->hipEventDestroy, "cuEventDestroy_v2");
  from.find(calls->hipEventRecord, "cuEventRecord");
  from.find(calls->hipEventSynchronize, "cuEventSynchronize");
  from.find(calls->hipStreamWaitEvent, "cuStreamWaitEvent");
  // the driver of CUDA 13 has a second version of this call, of one meaning for events that were recorded
  if (!from.find(calls->hipEventElapsedTime, "cuEventElapsedTime_v2"))
    from.find(calls->hipEventElapsedTime, "cuEventElapsedTime");
  from.find(calls->hipModuleLoadData, "cuModuleLoadData");
  from.find(calls->hipModuleUnload, "cuModuleUnload");
  from.find(calls->hipModuleGetFunction, "cuModuleGetFunction");
  from.find(calls->hipFuncSetAttribute, "cuFuncSetAttribute");
  from.find(calls->hipModuleLaunchKernel, "cuLaunchKernel");
  if (!cu.cuMemAlloc_v2 || !cu.cuDevicePrimaryCtxRetain || !calls->hipModuleLaunchKernel) return nullptr;
  calls->hipSetDevice = set_device;
  calls->hipGetErrorString = error_string;
  calls->hipMalloc = [](void** memory, std::size_t bytes) {
    address at = 0;
    const int code = cu.cuMemAlloc_v2(&at, bytes);
    *memory = reinterpret_cast<void*>(at);
    return code;
  };
  calls->hipFree = [](void* memory) { return cu.cuMemFree_v2(reinterpret_cast<address>(memory)); };
  calls->hipMemcpyAsync = [](void* to, const void* from_, std::size_t bytes, int, void* stream) {
    return cu.cuMemcpyAsync(reinterpret_cast<address>(to), reinterpret_cast<address>(from_), bytes, stream);
  };
  calls->hipMemsetAsync = [](void* to, int value, std::size_t bytes, void* stream) {
    return cu.cuMemsetD8Async(reinterpret_cast<address>(to), static_cast<unsigned char>(value), bytes, stream);
  };
  calls->hipEventCreate = [](void** event) { return cu.cuEventCreate(event, 0); };
  calls->hipGraphInstantiate = [](void** made, void* graph) { return cu.cuGraphInstantiateWithFlags(made, graph, 0); };
  if (cu.cuLaunchKernelEx) calls->launch_chained = launch_chained;
  if (cu.cuOccupancyMaxActiveClusters) calls->count_clusters = count_clusters;
  if (cu.cuTensorMapEncodeTiled && cu.cuTensorMapEncodeIm2col) calls->map_tensor = map_tensor;
  calls->is_device_memory = is_device_memory;
  calls->describe = describe;
  return calls;
}

std::unique_ptr<compiler_calls> open_nvidia_compiler() {
  library from({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so.13",
                "/usr/local/cuda/lib64/libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"});
  if (!from) return nullptr;
  auto calls = std::make_unique<compiler_calls>();
  calls->on = platform::nvidia;
  calls->library = from.name();
  from.find(calls->hiprtcCreateProgram, "nvrtcCreateProgram");
  from.find(calls->hiprtcCompileProgram, "nvrtcCompileProgram");
  from.find(calls->hiprtcGetProgramLogSize, "nvrtcGetProgramLogSize");
  from.find(calls->hiprtcGetProgramLog, "nvrtcGetProgramLog");
  from.find(calls->hiprtcGetCodeSize, "nvrtcGetCUBINSize");
  from.find(calls->hiprtcGetCode, "nvrtcGetCUBIN");
  from.find(calls->hiprtcDestroyProgram, "nvrtcDestroyProgram");
  from.find(calls->hiprtcGetErrorString, "nvrtcGetErrorString");
  int (*version)(int*, int*) = nullptr;
  if (from.find(version, "nvrtcVersion")) version(&calls->major, &calls->minor);
  return calls->hiprtcCompileProgram && calls->hiprtcGetCode ? std::move(calls) : nullptr;
}

}  // namespace kiln::hip
