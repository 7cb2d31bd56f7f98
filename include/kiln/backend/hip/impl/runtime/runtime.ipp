#include "kiln/backend/hip/runtime.hpp"

#include "kiln/backend/hip/impl/runtime/library.hpp"
#include "kiln/core/error.hpp"

namespace kiln::hip {

const runtime_calls* find_runtime(platform on) {
  const auto started = [](std::unique_ptr<runtime_calls> calls) {
    if (calls && (!calls->hipInit || calls->hipInit(0) != 0)) calls.reset();
    return calls;
  };
  if (on == platform::amd) {
    static const std::unique_ptr<runtime_calls> calls = started(open_amd_runtime());
    return calls.get();
  }
  static const std::unique_ptr<runtime_calls> calls = started(open_nvidia_runtime());
  return calls.get();
}

const compiler_calls* find_compiler(platform on) {
  if (on == platform::amd) {
    static const std::unique_ptr<compiler_calls> calls = open_amd_compiler();
    return calls.get();
  }
  static const std::unique_ptr<compiler_calls> calls = open_nvidia_compiler();
  return calls.get();
}

int device_count(platform on) {
  const runtime_calls* calls = find_runtime(on);
  int count = 0;
  return calls && calls->hipGetDeviceCount(&count) == 0 ? count : 0;
}

const runtime_calls& any_runtime() {
  std::string found;
  for (platform on : {platform::amd, platform::nvidia}) {
    if (device_count(on) > 0) return *find_runtime(on);
    const bool amd = on == platform::amd;
    const runtime_calls* calls = find_runtime(on);
    found += std::string(found.empty() ? "" : "; ") + (amd ? "AMD (libamdhip64.so): " : "NVIDIA (libcuda.so.1): ") +
             (calls ? calls->library + " is here, but it finds no device" : "no such library, or it does not start");
  }
  raise(errc::unsupported, "the HIP target runs on a GPU, and none is usable here. " + found);
}

void check(const runtime_calls& calls, int code, const char* call) {
  if (code == 0) return;
  // on both platforms: memory is short; and, of a kernel, an illegal address, one that took too long, a failed
  // assertion, and what only NVIDIA tells apart (a stack, an instruction, an alignment, an address space, a program
  // counter), another failure
  constexpr int out_of_memory = 2, illegal_address = 700, timed_out = 702, failed_assertion = 710,
                first_told_apart = 714, launch_failed = 719;
  const bool lost = code == illegal_address || code == timed_out || code == failed_assertion ||
                    (code >= first_told_apart && code <= launch_failed);
  raise(code == out_of_memory ? errc::limit : errc::io,
        std::string(call) + " failed: " + calls.hipGetErrorString(code) + " (" + std::to_string(code) + ")" +
            (lost ? "; a kernel faulted, and what this process has on the device is lost: start another process" : ""));
}

}  // namespace kiln::hip
