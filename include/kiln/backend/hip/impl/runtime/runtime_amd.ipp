#include <dlfcn.h>

#include <cstring>

#include "kiln/backend/hip/impl/runtime/library.hpp"

namespace kiln::hip {
namespace {

// hipGetDeviceProperties fills the structure of HIP 5, whatever the library's version: later ones have a symbol of
// another name for theirs. Byte offsets of what is read of it.
struct property {
  static constexpr std::size_t memory = 256, shared = 264, lanes = 276, multiprocessors = 336, cache = 340,
                               architecture = 396, whole = 4096;
};

const void* properties_call = nullptr;
const void* pointer_call = nullptr;
int device_memory_kind = 1;

void describe(int index, device_facts& out) {
  alignas(8) char bytes[property::whole] = {};
  const auto call = reinterpret_cast<int (*)(void*, int)>(const_cast<void*>(properties_call));
  if (!call || call(bytes, index) != 0) return;
  const auto number = [&]<class T>(std::size_t at, T value) {
    std::memcpy(&value, bytes + at, sizeof value);
    return value;
  };
  out.name = bytes;
  out.architecture = bytes + property::architecture;
  out.architecture = out.architecture.substr(0, out.architecture.find(':'));
  out.multiprocessors = number(property::multiprocessors, int{});
  out.lanes = number(property::lanes, int{});
  out.shared_bytes = number(property::shared, std::size_t{});
  out.cache_bytes = static_cast<std::size_t>(number(property::cache, int{}));
  out.memory_bytes = number(property::memory, std::size_t{});
}

bool is_device_memory(const void* address) {
  struct {
    int kind = 0, device = 0;
    void* pointers[4] = {};
    int rest[8] = {};
  } attributes;
  const auto call = reinterpret_cast<int (*)(void*, const void*)>(const_cast<void*>(pointer_call));
  return call && call(&attributes, address) == 0 && attributes.kind == device_memory_kind;
}

int (*instantiate)(void**, void*, void*, char*, std::size_t) = nullptr;

}  // namespace

std::unique_ptr<runtime_calls> open_amd_runtime() {
  library from({"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"});
  if (!from) return nullptr;
  auto calls = std::make_unique<runtime_calls>();
  calls->on = platform::amd;
  calls->library = from.name();
#define KILN_CALL(name) from.find(calls->name, #name)
  KILN_CALL(hipInit);
  KILN_CALL(hipGetDeviceCount);
  KILN_CALL(hipSetDevice);
  KILN_CALL(hipGetErrorString);
  KILN_CALL(hipMalloc);
  KILN_CALL(hipFree);
  KILN_CALL(hipHostMalloc);
  KILN_CALL(hipHostFree);
  KILN_CALL(hipMemcpyAsync);
  KILN_CALL(hipMemsetAsync);
  KILN_CALL(hipStreamCreateWithFlags);
  KILN_CALL(hipStreamDestroy);
  KILN_CALL(hipStreamSynchronize);
  KILN_CALL(hipStreamBeginCapture);
  KILN_CALL(hipStreamEndCapture);
  KILN_CALL(hipGraphLaunch);
  KILN_CALL(hipGraphDestroy);
  KILN_CALL(hipGraphExecDestroy);
  KILN_CALL(hipEventCreate);
  KILN_CALL(hipEventDestroy);
  KILN_CALL(hipEventRecord);
  KILN_CALL(hipEventSynchronize);
  KILN_CALL(hipStreamWaitEvent);
  KILN_CALL(hipEventElapsedTime);
  KILN_CALL(hipModuleLoadData);
  KILN_CALL(hipModuleUnload);
  KILN_CALL(hipModuleGetFunction);
  KILN_CALL(hipModuleLaunchKernel);
#undef KILN_CALL
  from.find(instantiate, "hipGraphInstantiate");
  if (instantiate)
    calls->hipGraphInstantiate = [](void** made, void* graph) { return instantiate(made, graph, nullptr, nullptr, 0); };
  // its kernels may use all of the fast memory as they are
  calls->hipFuncSetAttribute = [](void*, int, int) { return 0; };
  properties_call = from.symbol("hipGetDeviceProperties");
  pointer_call = from.symbol("hipPointerGetAttributes");
  int (*version)(int*) = nullptr;
  from.find(version, "hipRuntimeGetVersion");
  if (int found = 0; version && version(&found) == 0 && found >= 60000000) device_memory_kind = 2;
  calls->is_device_memory = is_device_memory;
  calls->describe = describe;
  return calls;
}

std::unique_ptr<compiler_calls> open_amd_compiler() {
  auto calls = std::make_unique<compiler_calls>();
  calls->on = platform::amd;
  // until HIP 5.3 the compiler was a part of the runtime
  for (const char* name :
       {"libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so", "libamdhip64.so.5"}) {
    library from({name});
    if (!from || !from.symbol("hiprtcCompileProgram")) continue;
    calls->library = from.name();
#define KILN_CALL(name) from.find(calls->name, #name)
    KILN_CALL(hiprtcCreateProgram);
    KILN_CALL(hiprtcCompileProgram);
    KILN_CALL(hiprtcGetProgramLogSize);
    KILN_CALL(hiprtcGetProgramLog);
    KILN_CALL(hiprtcGetCodeSize);
    KILN_CALL(hiprtcGetCode);
    KILN_CALL(hiprtcDestroyProgram);
    KILN_CALL(hiprtcGetErrorString);
#undef KILN_CALL
    // hiprtcVersion is that of the interface; the runtime's tells which devices its library knows
    int (*version)(int*) = nullptr;
    from.find(version, "hipRuntimeGetVersion");
    if (!version)
      library({"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"}).find(version, "hipRuntimeGetVersion");
    if (int found = 0; version && version(&found) == 0) {
      calls->major = found / 10000000;
      calls->minor = found / 100000 % 100;
    }
    return calls;
  }
  return nullptr;
}

}  // namespace kiln::hip
