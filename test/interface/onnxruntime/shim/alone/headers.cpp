// kiln's headers of ONNX Runtime: every kind of call that they wrap, through the stock library.
#include "help.hpp"

#include <cpu_provider_factory.h>
#include <onnxruntime/core/session/onnxruntime_cxx_api.h>
#include <onnxruntime_run_options_config_keys.h>
#include <onnxruntime_session_options_config_keys.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

Ort::Env env{ORT_LOGGING_LEVEL_ERROR, "headers"};

void values() {
  Ort::AllocatorWithDefaultOptions allocator;
  const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  CHECK(memory.GetAllocatorName() == "Cpu" && memory.GetAllocatorType() == OrtDeviceAllocator);
  CHECK(memory.GetDeviceId() == 0 && memory.GetDeviceType() == OrtMemoryInfoDeviceType_CPU);
  CHECK(memory == Ort::MemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault));

  const std::int64_t shape[] = {2, 3};
  float data[6] = {0, 1, 2, 3, 4, 5};
  Ort::Value over = Ort::Value::CreateTensor<float>(memory, data, 6, shape, 2);
  CHECK(over.IsTensor() && !over.IsSparseTensor() && over.HasValue());
  CHECK(over.GetTensorData<float>() == data && over.GetTensorSizeInBytes() == sizeof(data));
  CHECK(over.At<float>({1, 2}) == 5);
  CHECK(over.GetTensorMemoryInfo() == memory);
  const Ort::TensorTypeAndShapeInfo info = over.GetTensorTypeAndShapeInfo();
  CHECK(info.GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT && info.GetElementCount() == 6);
  CHECK((info.GetShape() == std::vector<std::int64_t>{2, 3}) && info.HasShape());
  CHECK(over.GetTypeInfo().GetONNXType() == ONNX_TYPE_TENSOR);

  Ort::Value own = Ort::Value::CreateTensor<std::int64_t>(allocator, shape, 2);
  own.GetTensorMutableData<std::int64_t>()[5] = 42;
  CHECK(own.GetConst().GetTensorData<std::int64_t>()[5] == 42);

  const std::int64_t three[] = {3};
  Ort::Value texts = Ort::Value::CreateTensor(allocator, three, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  const char* const words[] = {"one", "", "dr\xc3\xbc"};
  texts.FillStringTensor(words, 3);
  texts.FillStringTensorElement("two", 1);
  std::memcpy(texts.GetResizedStringTensorElementBuffer(0, 4), "null", 4);
  CHECK(texts.GetStringTensorElement(0) == "null" && texts.GetStringTensorElement(1) == "two");
  CHECK(texts.GetStringTensorDataLength() == 11);
  std::string content(11, ' ');
  std::size_t offsets[3];
  texts.GetStringTensorContent(content.data(), content.size(), offsets, 3);
  CHECK(content == "nulltwodr\xc3\xbc" && offsets[1] == 4 && offsets[2] == 7);

  std::vector<Ort::Value> items;
  items.push_back(std::move(over));
  items.push_back(Ort::Value::CreateTensor<float>(memory, data, 6, shape, 2));
  const Ort::Value sequence = Ort::Value::CreateSequence(items);
  CHECK(sequence.GetCount() == 2 && sequence.GetTypeInfo().GetONNXType() == ONNX_TYPE_SEQUENCE);
  CHECK(sequence.GetTypeInfo()
            .GetSequenceTypeInfo()
            .GetSequenceElementType()
            .GetTensorTypeAndShapeInfo()
            .GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  CHECK(sequence.GetValue(1, allocator).GetTensorData<float>()[3] == 3);
  CHECK(!refusal([&] { sequence.GetTensorData<float>(); }).empty());

  const std::int64_t keys[] = {1, 2};
  const std::int64_t two[] = {2};
  const Ort::Value map =
      Ort::Value::CreateMap(Ort::Value::CreateTensor<std::int64_t>(memory, const_cast<std::int64_t*>(keys), 2, two, 1),
                            Ort::Value::CreateTensor<float>(memory, data, 2, two, 1));
  CHECK(map.GetTypeInfo().GetMapTypeInfo().GetMapKeyType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
  CHECK(map.GetTypeInfo().GetMapTypeInfo().GetMapValueType().GetTensorTypeAndShapeInfo().GetElementType() ==
        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  CHECK(map.GetValue(0, allocator).GetTensorData<std::int64_t>()[1] == 2);

  Ort::MemoryAllocation bytes = allocator.GetAllocation(100);
  CHECK(bytes.get() && bytes.size() == 100 && allocator.GetInfo().GetAllocatorName() == "Cpu");
}

void floats() {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto h = Ort::Float16_t::FromBits(static_cast<std::uint16_t>(bits));
    const auto b = Ort::BFloat16_t::FromBits(static_cast<std::uint16_t>(bits));
    CHECK(std::isnan(h.ToFloat()) || Ort::Float16_t(h.ToFloat()).val == bits);
    CHECK(std::isnan(b.ToFloat()) || Ort::BFloat16_t(b.ToFloat()).val == bits);
  }
  CHECK(Ort::Float16_t(1 + 0x1p-11f).val == 0x3c00 && Ort::Float16_t(1 + 0x3p-11f).val == 0x3c02);  // ties to even
  CHECK(Ort::Float16_t(65519.f).val == 0x7bff && Ort::Float16_t(65520.f).val == 0x7c00);
  CHECK(Ort::Float16_t(0x1p-25f).val == 0 && Ort::Float16_t(0x1.8p-25f).val == 1 && Ort::Float16_t(-0.f).val == 0x8000);
  CHECK(std::isnan(Ort::Float16_t(std::nanf("")).ToFloat()) && std::isnan(Ort::BFloat16_t(std::nanf("")).ToFloat()));
}

void options() {
  Ort::SessionOptions so;
  so.SetIntraOpNumThreads(2).SetInterOpNumThreads(1).SetExecutionMode(ORT_SEQUENTIAL);
  so.SetGraphOptimizationLevel(ORT_ENABLE_ALL).EnableMemPattern().DisableMemPattern();
  so.EnableCpuMemArena().DisableCpuMemArena().SetLogId("id").SetLogSeverityLevel(3).SetLogVerbosityLevel(0);
  so.SetDeterministicCompute(true).DisableProfiling().AddConfigEntry(kOrtSessionOptionsConfigSetDenormalAsZero, "1");
  CHECK(so.HasConfigEntry("session.set_denormal_as_zero") && !so.HasConfigEntry("nothing"));
  const Ort::SessionOptions copy = so.Clone();
  CHECK(copy.GetConfigEntry("session.set_denormal_as_zero") == "1");
  CHECK(copy.GetConfigEntryOrDefault("nothing", "else") == "else");

  Ort::RunOptions how;
  how.SetRunTag("tag").SetRunLogSeverityLevel(3).SetRunLogVerbosityLevel(1).AddConfigEntry(
      kOrtRunOptionsConfigDisableSynchronizeExecutionProviders, "0");
  CHECK(how.GetRunTag() == std::string("tag") && how.GetRunLogSeverityLevel() == 3 &&
        how.GetRunLogVerbosityLevel() == 1);

  const std::unordered_map<std::string, std::string> texts{{"a", "1"}};
  Ort::KeyValuePairs pairs(texts);
  pairs.Add("b", "2");
  pairs.Remove("a");
  CHECK(pairs.GetValue("b") == std::string("2") && !pairs.GetValue("a") && pairs.GetKeyValuePairs().size() == 1);

  const Ort::Status status("reason", ORT_INVALID_GRAPH);
  CHECK(!status.IsOK() && status.GetErrorMessage() == "reason" && status.GetErrorCode() == ORT_INVALID_GRAPH);
  CHECK(Ort::Status(nullptr).IsOK() && !Ort::GetBuildInfoString().empty() && contains(Ort::GetVersionString(), "1."));
}

void sessions() {
  Ort::AllocatorWithDefaultOptions allocator;
  std::vector<char> file;
  if (std::FILE* in = std::fopen(digits, "rb")) {
    char buffer[4096];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, in)) > 0;)
      file.insert(file.end(), buffer, buffer + n);
    std::fclose(in);
  }
  CHECK(!refusal([&] { Ort::Session(env, "/no/such/model", Ort::SessionOptions()); }).empty());
  Ort::SessionOptions so = recorded();
  so.AppendExecutionProvider_V2(
      env, env.GetEpDevices().size() ? std::vector{env.GetEpDevices()[0]} : std::vector<Ort::ConstEpDevice>{});
  Ort::Session session(env, digits, so);
  CHECK(session.GetInputCount() == 1 && session.GetOutputCount() == 1);
  CHECK(session.GetInputNames().size() == 1 &&
        session.GetOutputNames()[0] == session.GetOutputNameAllocated(0, allocator).get());
  CHECK(session.GetOverridableInitializerCount() == session.GetOverridableInitializerNames().size());
  const Ort::TypeInfo type = session.GetInputTypeInfo(0);
  CHECK(type.GetTensorTypeAndShapeInfo().GetShape().size() ==
        type.GetTensorTypeAndShapeInfo().GetSymbolicDimensions().size());
  const Ort::ModelMetadata about = session.GetModelMetadata();
  CHECK(about.GetProducerNameAllocated(allocator) && about.GetGraphNameAllocated(allocator) && about.GetVersion() >= 0);
  CHECK(about.GetCustomMetadataMapKeysAllocated(allocator).empty() ||
        !about.LookupCustomMetadataMapAllocated("", allocator));

  // bound inputs and outputs: into the program's memory, and into memory that the run makes
  const std::vector<float> expected = run(session);
  std::vector<std::int64_t> shape = type.GetTensorTypeAndShapeInfo().GetShape();
  shape[0] = 3;
  Ort::Value scans = Ort::Value::CreateTensor<float>(allocator, shape.data(), shape.size());
  const std::size_t count = scans.GetTensorTypeAndShapeInfo().GetElementCount();
  for (std::size_t i = 0; i < count; ++i) scans.GetTensorMutableData<float>()[i] = static_cast<float>(i * 7 % 17) / 16;
  const std::string input = session.GetInputNames()[0], output = session.GetOutputNames()[0];
  const std::int64_t out_shape[] = {3, static_cast<std::int64_t>(expected.size()) / 3};
  Ort::Value result = Ort::Value::CreateTensor<float>(allocator, out_shape, 2);
  Ort::IoBinding bound(session);
  bound.BindInput(input.c_str(), scans);
  bound.BindOutput(output.c_str(), result);
  bound.SynchronizeInputs();
  session.Run(Ort::RunOptions(), bound);
  bound.SynchronizeOutputs();
  CHECK(std::equal(expected.begin(), expected.end(), result.GetTensorData<float>()));
  CHECK(bound.GetOutputNames() == std::vector<std::string>{output});
  bound.ClearBoundOutputs();
  bound.BindOutput(output.c_str(), Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault));
  session.Run(Ort::RunOptions(), bound);
  CHECK(std::equal(expected.begin(), expected.end(), bound.GetOutputValues()[0].GetTensorData<float>()));
  bound.ClearBoundInputs();

  Ort::RunOptions stopped;
  stopped.SetTerminate();
  const char *const in = input.c_str(), *const out = output.c_str();
  CHECK(!refusal([&] { session.Run(stopped, &in, &scans, 1, &out, 1); }).empty());
  stopped.UnsetTerminate();
  CHECK(session.Run(stopped, &in, &scans, 1, &out, 1).size() == 1);
}

}  // namespace

int main() {
  values();
  floats();
  options();
  sessions();
  std::puts("ok");
}
