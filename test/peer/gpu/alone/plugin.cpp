#include "kiln/interface/onnxruntime/factory.hpp"
#include "peer/gpu/alone/fake_gpu.hpp"

// The plugin with a GPU for tests in place of the machine's.

extern "C" {
[[gnu::visibility("default")]] OrtStatus* CreateEpFactories(const char* name, const OrtApiBase* base,
                                                            const OrtLogger* logger, OrtEpFactory** made, std::size_t,
                                                            std::size_t* count) {
  made[0] = new kiln::onnxruntime::factory(*base, name, kiln::fake::gpus(), logger);
  *count = 1;
  return nullptr;
}
[[gnu::visibility("default")]] OrtStatus* ReleaseEpFactory(OrtEpFactory* made) {
  delete static_cast<kiln::onnxruntime::factory*>(made);
  return nullptr;
}
/// Bytes of the GPU in use, copies so far, streams that are open.
[[gnu::visibility("default")]] void kiln_onnxruntime_fake_gpu(std::size_t* bytes, std::size_t* copies,
                                                              std::size_t* streams) {
  *bytes = kiln::fake::live_bytes, *copies = kiln::fake::copies, *streams = kiln::fake::streams;
}
}
