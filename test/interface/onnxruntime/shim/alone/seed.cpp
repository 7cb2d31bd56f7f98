// The five lines by which ONNX Runtime's documentation asks for MIGraphX's provider, as they stand there: kiln takes
// every node of digits, and gives what ONNX Runtime's own provider gives.
#include "help.hpp"

#include <onnxruntime_cxx_api.h>

int main() {
  // [lines]
  Ort::Env env = Ort::Env{ORT_LOGGING_LEVEL_ERROR, "Default"};
  Ort::SessionOptions so;
  int device_id = 0;
  Ort::ThrowOnError(OrtSessionOptionsAppendExecutionProvider_MIGraphX(so, device_id));
  // [/lines]
  so.AddConfigEntry("session.record_ep_graph_assignment_info", "1");
  so.AddConfigEntry("session.disable_cpu_ep_fallback", "1");
  Ort::Session session(env, digits, so);
  CHECK(takes_all(session, "MIGraphXExecutionProvider"));

  Ort::Session own(env, digits, recorded());
  CHECK(takes_all(own, "CPUExecutionProvider"));
  CHECK(close(run(session), run(own)));
  std::puts("ok");
}
