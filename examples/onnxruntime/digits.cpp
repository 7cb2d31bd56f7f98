// A program of ONNX Runtime runs a network on kiln: scans of handwritten digits are classified. It is linked with
// kiln's libonnxruntime.so.1, and needs a stock one, which KILN_ONNXRUNTIME_LIBRARY names.
#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

const std::string folder = "examples/models/digits/";

/// The raw data of a tensor's file (ONNX's TensorProto), which ends with it in files like these.
template <class T> std::vector<T> read(const std::string& file, std::size_t count) {
  std::ifstream in(folder + file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::vector<T> out(count);
  if (bytes.size() < count * sizeof(T)) throw std::runtime_error(file + " is missing or short");
  std::memcpy(out.data(), bytes.data() + bytes.size() - count * sizeof(T), count * sizeof(T));
  return out;
}

}  // namespace

int main() try {
  // [session]
  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "digits");
  Ort::SessionOptions options;
  options.AppendExecutionProvider("MIGraphX", {{"threads", "2"}});
  Ort::Session session(env, (folder + "model.onnx").c_str(), options);
  // [/session]

  const std::int64_t shape[] = {360, 1, 8, 8};
  std::vector<float> scans = read<float>("test_data_set_0/input_0.pb", 360 * 64);
  const auto labels = read<std::int64_t>("labels.pb", 360);
  // [run]
  const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const Ort::Value input = Ort::Value::CreateTensor<float>(memory, scans.data(), scans.size(), shape, 4);
  const std::string input_name = session.GetInputNames()[0], output_name = session.GetOutputNames()[0];
  const char *const in = input_name.c_str(), *const out = output_name.c_str();
  const std::vector<Ort::Value> outputs = session.Run(Ort::RunOptions(), &in, &input, 1, &out, 1);
  // [/run]

  const float* row = outputs[0].GetTensorData<float>();
  std::size_t right = 0;
  for (const std::int64_t label : labels) {
    right += std::max_element(row, row + 10) - row == label;
    row += 10;
  }
  std::printf("ONNX Runtime %s on kiln: %zu of %zu scans\n", Ort::GetVersionString().c_str(), right, labels.size());
  return right == labels.size() ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
