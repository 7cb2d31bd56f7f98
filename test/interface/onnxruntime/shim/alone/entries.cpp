// Every way by which a program names kiln's provider, and what is refused.
#include "help.hpp"

#include <algorithm>
#include <cstring>

namespace {

Ort::Env env{ORT_LOGGING_LEVEL_ERROR, "entries"};

std::vector<float> expected() {
  Ort::Session own(env, digits, Ort::SessionOptions());
  return run(own);
}

void by_name() {
  const std::vector<std::pair<std::string, std::string>> names{
      {"MIGraphX", "MIGraphXExecutionProvider"},
      {"MIGraphXExecutionProvider", "MIGraphXExecutionProvider"},
      {"kiln", "KilnExecutionProvider"},
      {"Kiln", "KilnExecutionProvider"},
      {"KilnExecutionProvider", "KilnExecutionProvider"}};
  for (const auto& [name, provider] : names) {
    Ort::SessionOptions so = recorded();
    so.AppendExecutionProvider(name, {{"threads", "1"}});
    Ort::Session session(env, digits, so);
    CHECK(takes_all(session, provider));
    CHECK(close(run(session), expected()));
  }
}

// Options reach the provider: half precision differs from float, and a name that is none is refused.
void options() {
  Ort::SessionOptions half = recorded(), plain = recorded(), wrong;
  half.AppendExecutionProvider("MIGraphX", {{"migraphx_fp16_enable", "1"}});
  plain.AppendExecutionProvider("MIGraphX");
  Ort::Session a(env, digits, half), b(env, digits, plain);
  CHECK(run(a) != run(b));
  CHECK(close(run(a), run(b), 0.1f));
  wrong.AppendExecutionProvider("kiln", {{"fp17_enable", "1"}});
  CHECK(contains(refusal([&] { Ort::Session(env, digits, wrong); }), "fp17_enable"));
}

void by_struct() {
  OrtMIGraphXProviderOptions given{};
  Ort::SessionOptions plain = recorded();
  plain.AppendExecutionProvider_MIGraphX(given);
  Ort::Session a(env, digits, plain);
  CHECK(takes_all(a, "MIGraphXExecutionProvider"));
  given.migraphx_fp16_enable = 1;
  given.migraphx_mem_limit = SIZE_MAX;
  Ort::SessionOptions half = recorded();
  half.AppendExecutionProvider_MIGraphX(given);
  Ort::Session b(env, digits, half);
  CHECK(run(a) != run(b));
  CHECK(close(run(a), run(b), 0.1f));

  // members arrive as the options that the documentation names
  given = {};
  given.migraphx_int8_enable = 1;
  given.migraphx_int8_calibration_table_name = "/no/such/table";
  Ort::SessionOptions quantized;
  quantized.AppendExecutionProvider_MIGraphX(given);
  const auto entry = [&](const char* key) {
    return quantized.GetConfigEntryOrDefault(("ep.migraphxexecutionprovider." + std::string(key)).c_str(), "");
  };
  CHECK(entry("migraphx_int8_enable") == "1");
  CHECK(entry("migraphx_int8_calibration_table_name") == "/no/such/table");
  CHECK(contains(refusal([&] { Ort::Session(env, digits, quantized); }), "/no/such/table"));
}

// Every member of the struct, by the option that it becomes.
void members() {
  OrtMIGraphXProviderOptions given{};
  given.device_id = 3;
  given.migraphx_fp16_enable = given.migraphx_fp8_enable = given.migraphx_int8_enable = 1;
  given.migraphx_use_native_calibration_table = 1;
  given.migraphx_int8_calibration_table_name = "table";
  given.migraphx_save_compiled_model = given.migraphx_load_compiled_model = 1;
  given.migraphx_save_model_path = "saved", given.migraphx_load_model_path = "loaded";
  given.migraphx_exhaustive_tune = true;
  given.migraphx_mem_limit = 12345678901;
  given.migraphx_arena_extend_strategy = 1;
  Ort::SessionOptions so;
  so.AppendExecutionProvider_MIGraphX(given);
  const std::vector<std::pair<std::string, std::string>> wanted{{"device_id", "3"},
                                                                {"migraphx_fp16_enable", "1"},
                                                                {"migraphx_fp8_enable", "1"},
                                                                {"migraphx_int8_enable", "1"},
                                                                {"migraphx_int8_use_native_calibration_table", "1"},
                                                                {"migraphx_int8_calibration_table_name", "table"},
                                                                {"migraphx_save_compiled_model", "1"},
                                                                {"migraphx_save_compiled_path", "saved"},
                                                                {"migraphx_load_compiled_model", "1"},
                                                                {"migraphx_load_compiled_path", "loaded"},
                                                                {"migraphx_exhaustive_tune", "1"},
                                                                {"migraphx_mem_limit", "12345678901"},
                                                                {"migraphx_arena_extend_strategy", "kSameAsRequested"}};
  for (const auto& [key, value] : wanted)
    CHECK(so.GetConfigEntryOrDefault(("ep.migraphxexecutionprovider." + key).c_str(), "") == value);
}

// Structs of other layouts bring values that nobody means.
void wrong_structs() {
  const auto refused = [](auto&& change) {
    OrtMIGraphXProviderOptions given{};
    change(given);
    Ort::SessionOptions so;
    return refusal([&] { so.AppendExecutionProvider_MIGraphX(given); });
  };
  CHECK(contains(refused([](auto& g) { g.device_id = -1; }), "device_id is the number of a device, found -1"));
  CHECK(contains(refused([](auto& g) { g.migraphx_fp16_enable = 2; }), "migraphx_fp16_enable is 0 or 1, found 2"));
  CHECK(contains(refused([](auto& g) { g.migraphx_int8_enable = -7; }), "migraphx_int8_enable"));
  CHECK(contains(refused([](auto& g) { std::memset(&g.migraphx_exhaustive_tune, 0xcd, 1); }), "found 205"));
  CHECK(contains(refused([](auto& g) { g.migraphx_arena_extend_strategy = 9; }), "migraphx_arena_extend_strategy"));
  CHECK(contains(refused([](auto& g) { g.migraphx_save_model_path = reinterpret_cast<const char*>(1); }),
                 "migraphx_save_model_path"));
  // the layout of 1.18: the pointer to the table lies where this one has two flags
  struct {
    int device_id, fp16, int8, native;
    const char* table;
    char room[64];
  } const old{0, 0, 1, 1, "calibration", {}};
  CHECK(contains(refused([&](auto& g) { std::memcpy(&g, &old, sizeof(g)); }), "in the layout of ONNX Runtime 1.19"));
}

void refusals() {
  const OrtApi& api = Ort::GetApi();
  Ort::SessionOptions so;
  CHECK(Ort::Status(OrtSessionOptionsAppendExecutionProvider_MIGraphX(nullptr, 0)).GetErrorCode() ==
        ORT_INVALID_ARGUMENT);
  CHECK(!Ort::Status(OrtSessionOptionsAppendExecutionProvider_MIGraphX(so, -3)).IsOK());
  CHECK(!Ort::Status(api.SessionOptionsAppendExecutionProvider_MIGraphX(so, nullptr)).IsOK());
  CHECK(!Ort::Status(api.SessionOptionsAppendExecutionProvider(so, "kiln", nullptr, nullptr, 1)).IsOK());
  const char* const key = "threads";
  const char* const none = nullptr;
  CHECK(!Ort::Status(api.SessionOptionsAppendExecutionProvider(so, "kiln", &key, &none, 1)).IsOK());
  // other names are ONNX Runtime's to judge
  CHECK(contains(refusal([&] { so.AppendExecutionProvider("NoSuchProvider"); }), "NoSuchProvider"));
}

void stock_functions() {
  Ort::SessionOptions so = recorded();
  Ort::ThrowOnError(OrtSessionOptionsAppendExecutionProvider_CPU(so, 1));
  Ort::Session session(env, digits, so);
  CHECK(takes_all(session, "CPUExecutionProvider"));
  CHECK(!Ort::Status(OrtSessionOptionsAppendExecutionProvider_CUDA(so, 0)).IsOK());
  CHECK(!Ort::Status(OrtSessionOptionsAppendExecutionProvider_Tensorrt(so, 0)).IsOK());

  const OrtApiBase* const base = OrtGetApiBase();
  CHECK(contains(base->GetVersionString(), "1."));
  CHECK(base->GetApi(1) && base->GetApi(1) == base->GetApi(24));
  CHECK(!base->GetApi(100000) && !base->GetApi(0));
}

void providers() {
  const std::vector<std::string> names = Ort::GetAvailableProviders();
  CHECK(names.size() >= 3);
  CHECK(names[0] == "MIGraphXExecutionProvider" && names[1] == "KilnExecutionProvider");
  CHECK(std::count(names.begin(), names.end(), "CPUExecutionProvider") == 1);
}

}  // namespace

int main() {
  by_name();
  options();
  by_struct();
  members();
  wrong_structs();
  refusals();
  stock_functions();
  providers();
  std::puts("ok");
}
