#include <cstring>

#include "kiln/interface/genai/impl/guard.hpp"

namespace kiln::genai {
namespace {

[[gnu::init_priority(101)]] expression_owner expressions;

OgaResult without_memory{"limit exceeded: the machine has memory for what is asked for"};

}  // namespace

OgaResult* result_of_exception() noexcept {
  try {
    keep_last_error();
    const last_error* const e = find_last_error();
    return e ? new OgaResult{e->whole} : &without_memory;
  } catch (...) {
    return &without_memory;
  }
}

const char* new_string(std::string_view from) {
  char* const out = new char[from.size() + 1];
  std::memcpy(out, from.data(), from.size());
  out[from.size()] = 0;
  return out;
}

std::atomic<unsigned>& current_gpu() {
  static std::atomic<unsigned> number = 0;
  return number;
}

}  // namespace kiln::genai

using namespace kiln::genai;

void OgaShutdown() { OgaSetLogString("filename", nullptr); }
const char* OgaResultGetError(const OgaResult* result) { return result ? result->text.c_str() : ""; }
void OgaDestroyResult(OgaResult* result) {
  if (result != &without_memory) delete result;
}
void OgaDestroyString(const char* text) { delete[] text; }

void OgaSetTelemetryEnabled(bool) {}

OgaResult* OgaSetCurrentGpuDeviceId(int device_id) {
  return guarded([&] {
    if (device_id < 0)
      raise(kiln::errc::invalid_argument, "a GPU's number is 0 or more: found " + std::to_string(device_id));
    current_gpu() = static_cast<unsigned>(device_id);
  });
}
OgaResult* OgaGetCurrentGpuDeviceId(int* device_id) {
  return told(device_id, [] { return static_cast<int>(current_gpu().load()); });
}

void OgaRegisterExecutionProviderLibrary(const char* registration_name, const char*) {
  write_log(log_item::warning, "execution provider library '" + std::string(optional_text(registration_name)) +
                                   "': kiln runs models itself and loads none");
}
void OgaUnregisterExecutionProviderLibrary(const char*) {}
