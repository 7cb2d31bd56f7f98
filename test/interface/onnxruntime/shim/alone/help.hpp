#pragma once
#include <onnxruntime_cxx_api.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

// What the programs over kiln's libonnxruntime.so.1 share; they run from the repository's root.

#define CHECK(what)                                                  \
  do {                                                               \
    if (!(what)) {                                                   \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
      std::exit(1);                                                  \
    }                                                                \
  } while (false)

inline constexpr const char* digits = "examples/models/digits/model.onnx";

/// The message of what a body throws; empty where it throws nothing.
template <class Body> std::string refusal(Body&& body) {
  try {
    body();
  } catch (const Ort::Exception& e) {
    return e.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Options of a session whose placement can be asked for.
inline Ort::SessionOptions recorded() {
  Ort::SessionOptions out;
  out.AddConfigEntry("session.record_ep_graph_assignment_info", "1");
  return out;
}

/// How many nodes a session's providers were given: those of `name`, and all.
inline std::pair<std::size_t, std::size_t> placed(const Ort::Session& in, const std::string& name) {
  const OrtEpAssignedSubgraph* const* parts = nullptr;
  std::size_t count = 0, own = 0, all = 0;
  Ort::ThrowOnError(Ort::GetApi().Session_GetEpGraphAssignmentInfo(in, &parts, &count));
  for (std::size_t i = 0; i < count; ++i) {
    const char* provider = nullptr;
    const OrtEpAssignedNode* const* nodes = nullptr;
    std::size_t n = 0;
    Ort::ThrowOnError(Ort::GetApi().EpAssignedSubgraph_GetEpName(parts[i], &provider));
    Ort::ThrowOnError(Ort::GetApi().EpAssignedSubgraph_GetNodes(parts[i], &nodes, &n));
    all += n;
    if (name == provider) own += n;
  }
  return {own, all};
}
inline bool takes_all(const Ort::Session& in, const std::string& name) {
  const auto [own, all] = placed(in, name);
  return own > 0 && own == all;
}

/// Outputs of digits for `batch` scans of a ramp.
inline std::vector<float> run(Ort::Session& in, std::int64_t batch = 3) {
  Ort::AllocatorWithDefaultOptions allocator;
  std::vector<std::int64_t> shape = in.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape();
  shape[0] = batch;
  std::vector<float> scans(static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, [](auto a, auto b) { return a * b; })));
  for (std::size_t i = 0; i < scans.size(); ++i) scans[i] = static_cast<float>(i * 7 % 17) / 16;
  const Ort::Value given =
      Ort::Value::CreateTensor<float>(Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault), scans.data(),
                                      scans.size(), shape.data(), shape.size());
  const Ort::AllocatedStringPtr input = in.GetInputNameAllocated(0, allocator),
                                output = in.GetOutputNameAllocated(0, allocator);
  const char *const input_name = input.get(), *const output_name = output.get();
  const std::vector<Ort::Value> out = in.Run(Ort::RunOptions{nullptr}, &input_name, &given, 1, &output_name, 1);
  const float* const data = out[0].GetTensorData<float>();
  return {data, data + out[0].GetTensorTypeAndShapeInfo().GetElementCount()};
}

inline bool close(const std::vector<float>& a, const std::vector<float>& b, float most = 1e-4f) {
  if (a.size() != b.size() || a.empty()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(a[i] - b[i] <= most && b[i] - a[i] <= most)) return false;
  return true;
}
