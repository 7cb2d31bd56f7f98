#include "kiln/interface/onnxruntime/factory.hpp"

#include <memory>

#include "kiln/interface/named_target.hpp"
#include "kiln/interface/onnxruntime/provider.hpp"
#include "kiln/version.hpp"

namespace kiln::onnxruntime {

namespace {

constexpr std::string_view migraphx_name = "MIGraphXExecutionProvider";

const factory& of(const OrtEpFactory* f) { return *static_cast<const factory*>(f); }

}  // namespace

factory::factory(const OrtApiBase& base, std::string_view registered)
    : OrtEpFactory{}, host_(base), name_(registered == migraphx_name ? migraphx_name : "KilnExecutionProvider") {
  ort_version_supported = api_version;
  GetName = [](const OrtEpFactory* f) { return of(f).name_.c_str(); };
  GetVendor = [](const OrtEpFactory*) { return "kiln"; };
  GetVendorId = [](const OrtEpFactory*) -> std::uint32_t { return 0; };
  GetVersion = [](const OrtEpFactory*) { return version_text; };
  GetSupportedDevices = [](OrtEpFactory* f, const OrtHardwareDevice* const* devices, std::size_t count,
                           OrtEpDevice** made, std::size_t most, std::size_t* number) -> OrtStatus* {
    return of(f).host_.guarded([&] { static_cast<factory*>(f)->name_devices(devices, count, made, most, number); });
  };
  CreateEp = [](OrtEpFactory* f, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, std::size_t,
                const OrtSessionOptions* session, const OrtLogger* logger, OrtEp** made) -> OrtStatus* {
    return of(f).host_.guarded([&] { *made = new provider(of(f), session, logger); });
  };
  ReleaseEp = [](OrtEpFactory*, OrtEp* made) { delete static_cast<provider*>(made); };
  ValidateCompiledModelCompatibilityInfo = [](OrtEpFactory* f, const OrtHardwareDevice* const*, std::size_t,
                                              const char* info, int* answer) -> OrtStatus* {
    return of(f).host_.guarded(
        [&] { *answer = static_cast<int>(judge_compatibility(info ? info : "", *named_target("cpu"))); });
  };
  // ONNX Runtime calls this while it registers a library, without asking whether it is there.
  CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** made) -> OrtStatus* {
    *made = nullptr;
    return nullptr;
  };
  IsStreamAware = [](const OrtEpFactory*) { return false; };
}

void factory::name_devices(const OrtHardwareDevice* const* devices, std::size_t count, OrtEpDevice** made,
                           std::size_t most, std::size_t* number) {
  *number = 0;
  for (std::size_t i = 0; i < count && *number < most; ++i)
    if (host_.call(api::hardware_type, devices[i]) == hardware::cpu) {
      host_.call_ep(ep_api::create_device, this, devices[i], nullptr, nullptr, &made[*number]);
      ++*number;
    }
}

}  // namespace kiln::onnxruntime
