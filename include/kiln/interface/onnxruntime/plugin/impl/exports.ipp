#include "kiln/interface/onnxruntime/factory.hpp"

// The two functions that ONNX Runtime looks for in a plugin.

extern "C" {

[[gnu::visibility("default")]] OrtStatus* CreateEpFactories(const char* registered_name, const OrtApiBase* base,
                                                            const OrtLogger* logger, OrtEpFactory** made,
                                                            std::size_t most, std::size_t* count) {
  *count = 0;
  try {
    if (most == 0) return nullptr;
    made[0] = new kiln::onnxruntime::factory(*base, registered_name ? registered_name : "", kiln::hip_gpus(), logger);
    *count = 1;
    return nullptr;
  } catch (const std::exception& e) {
    // the first version has this function at the same place
    const kiln::onnxruntime::function_table first(base->GetApi(1));
    return first(kiln::onnxruntime::api::create_status, kiln::onnxruntime::status_code::not_implemented, e.what());
  }
}

[[gnu::visibility("default")]] OrtStatus* ReleaseEpFactory(OrtEpFactory* made) {
  delete static_cast<kiln::onnxruntime::factory*>(made);
  return nullptr;
}
}
