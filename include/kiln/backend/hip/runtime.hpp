#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln::hip {

/// Which of HIP's platforms serves: AMD's (amdhip64 and hiprtc) or NVIDIA's (the CUDA driver and NVRTC).
enum class platform : std::uint8_t { amd, nvidia };

/// HIP's calls by their names. The platform's libraries are opened while the program runs, so building needs neither,
/// and a machine without them gets an error that says what was looked for. Handles are opaque; every call returns
/// 0 or an error code. A null pointer is a call that the library does not have.
struct runtime_calls {
  platform on = platform::amd;
  std::string library;
  int (*hipInit)(unsigned flags) = nullptr;
  int (*hipGetDeviceCount)(int* count) = nullptr;
  int (*hipSetDevice)(int device) = nullptr;
  const char* (*hipGetErrorString)(int code) = nullptr;
  int (*hipMalloc)(void** memory, std::size_t bytes) = nullptr;
  int (*hipFree)(void* memory) = nullptr;
  int (*hipHostMalloc)(void** memory, std::size_t bytes, unsigned flags) = nullptr;
  int (*hipHostFree)(void* memory) = nullptr;
  int (*hipMemcpyAsync)(void* to, const void* from, std::size_t bytes, int kind, void* stream) = nullptr;
  int (*hipMemsetAsync)(void* to, int value, std::size_t bytes, void* stream) = nullptr;
  int (*hipStreamCreateWithFlags)(void** stream, unsigned flags) = nullptr;
  int (*hipStreamDestroy)(void* stream) = nullptr;
  int (*hipStreamSynchronize)(void* stream) = nullptr;
  int (*hipStreamBeginCapture)(void* stream, int mode) = nullptr;
  int (*hipStreamEndCapture)(void* stream, void** graph) = nullptr;
  int (*hipGraphInstantiate)(void** made, void* graph) = nullptr;
  int (*hipGraphLaunch)(void* made, void* stream) = nullptr;
  int (*hipGraphDestroy)(void* graph) = nullptr;
  int (*hipGraphExecDestroy)(void* made) = nullptr;
  int (*hipEventCreate)(void** event) = nullptr;
  int (*hipEventDestroy)(void* event) = nullptr;
  int (*hipEventRecord)(void* event, void* stream) = nullptr;
  int (*hipEventSynchronize)(void* event) = nullptr;
  int (*hipStreamWaitEvent)(void* stream, void* event, unsigned flags) = nullptr;
  int (*hipEventElapsedTime)(float* milliseconds, void* from, void* to) = nullptr;
  int (*hipModuleLoadData)(void** module, const void* image) = nullptr;
  int (*hipModuleUnload)(void* module) = nullptr;
  int (*hipModuleGetFunction)(void** function, void* module, const char* name) = nullptr;
  int (*hipFuncSetAttribute)(void* function, int attribute, int value) = nullptr;
  int (*hipModuleLaunchKernel)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                               void** arguments, void** extra) = nullptr;
  /// Like hipModuleLaunchKernel, but the kernel's blocks may start while the one before it ends; it waits for that one
  /// itself (begin_kernel in kernels/platform/). Null where the platform can't.
  int (*launch_chained)(void* function, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared_bytes,
                        void* stream, void** arguments) = nullptr;
  /// How many clusters of so many blocks of a function run at once. Null where the platform has no such call.
  int (*count_clusters)(int* count, void* function, unsigned blocks, unsigned threads, unsigned shared_bytes) = nullptr;
  /// Writes the 128 bytes that a kernel is passed for the copy unit to read such a tensor. Null where there is no such
  /// unit.
  int (*map_tensor)(void* map, const struct tensor_boxes& how) = nullptr;
  /// Whether an address is memory of a device.
  bool (*is_device_memory)(const void* address) = nullptr;
  /// A property of device `index`: see `device_facts`.
  void (*describe)(int index, struct device_facts& out) = nullptr;
};

/// How the copy unit of sm_90 goes through a tensor: `tiled` in boxes of rows of the second dim, `im2col` in boxes of
/// what windows meet, of places of lines (rank 3) or of pixels of images (rank 4), on from one line to the next.
enum class copy_mode : std::uint8_t { tiled, im2col };

/// A tensor of 16-bit floats, or of bytes, as the copy unit is to see it, extents and steps from the last dim, of step
/// 1, on.
struct tensor_boxes {
  const void* base = nullptr;
  bool bfloat16 = false, bytes = false;
  copy_mode mode = copy_mode::tiled;
  int rank = 2;
  std::uint64_t extents[4] = {};
  std::uint64_t step_bytes[3] = {};  ///< of all dims but the first one here
  unsigned along = 64, across = 0;   ///< elements of a box: of the first dim, and of the second, or windows
  /// Of im2col: from the corners of lines or images to those of the first and last window.
  int lower[2] = {}, upper[2] = {};
  unsigned stride[4] = {1, 1, 1, 1};
  int width() const { return bytes ? 1 : 2; }  ///< of an element
};

/// What is known of a device.
struct device_facts {
  std::string name;                      ///< the product's
  std::string architecture;              ///< "gfx90a", "sm_90", …
  int multiprocessors = 0;               ///< compute units
  int lanes = 32;                        ///< of a wavefront or warp
  std::size_t shared_bytes = 48 * 1024;  ///< of fast memory that a block may use
  std::size_t cache_bytes = 0;           ///< of the last cache
  std::size_t memory_bytes = 0;
};

/// hiprtc's calls by their names; NVRTC has the same under its own.
struct compiler_calls {
  platform on = platform::amd;
  std::string library;
  int major = 0, minor = 0;
  int (*hiprtcCreateProgram)(void** program, const char* source, const char* name, int count, const char** headers,
                             const char** names) = nullptr;
  int (*hiprtcCompileProgram)(void* program, int count, const char** options) = nullptr;
  int (*hiprtcGetProgramLogSize)(void* program, std::size_t* bytes) = nullptr;
  int (*hiprtcGetProgramLog)(void* program, char* log) = nullptr;
  int (*hiprtcGetCodeSize)(void* program, std::size_t* bytes) = nullptr;
  int (*hiprtcGetCode)(void* program, char* code) = nullptr;
  int (*hiprtcDestroyProgram)(void** program) = nullptr;
  const char* (*hiprtcGetErrorString)(int code) = nullptr;
};

/// The platform's calls; null where its library is not on this machine. Opened once.
const runtime_calls* find_runtime(platform on);
const compiler_calls* find_compiler(platform on);

/// The calls of the platform that has a device, AMD's first. Where there is none an `unsupported` error says what was
/// looked for and found.
const runtime_calls& any_runtime();
/// Devices of that platform; 0 where there is none.
int device_count(platform on);

/// Throws `error` where a call failed, naming it and the platform's own words.
void check(const runtime_calls& calls, int code, const char* call);

}  // namespace kiln::hip
