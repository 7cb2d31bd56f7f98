#include "kiln/interface/onnxruntime/factory.hpp"

#include <algorithm>
#include <memory>

#include "kiln/interface/named_target.hpp"
#include "kiln/interface/onnxruntime/gpu_allocator.hpp"
#include "kiln/interface/onnxruntime/provider.hpp"
#include "kiln/version.hpp"

namespace kiln::onnxruntime {

namespace {

constexpr std::string_view migraphx_name = "MIGraphXExecutionProvider";

const factory& of(const OrtEpFactory* f) { return *static_cast<const factory*>(f); }

}  // namespace

factory::factory(const OrtApiBase& base, std::string_view registered, gpu_source gpus, const OrtLogger* logger)
    : OrtEpFactory{},
      host_(base),
      name_(registered == migraphx_name ? migraphx_name : "KilnExecutionProvider"),
      source_(std::move(gpus)),
      logger_(logger) {
  constexpr int device_allocator = 0, default_memory = 0;
  host_memory_ = host_.get<OrtMemoryInfo*>(api::cpu_memory, device_allocator, default_memory);
  ort_version_supported = api_version;
  GetName = [](const OrtEpFactory* f) { return of(f).name_.c_str(); };
  GetVendor = [](const OrtEpFactory*) { return "kiln"; };
  GetVendorId = [](const OrtEpFactory*) -> std::uint32_t { return 0; };
  GetVersion = [](const OrtEpFactory*) { return version_text; };
  GetSupportedDevices = [](OrtEpFactory* f, const OrtHardwareDevice* const* devices, std::size_t count,
                           OrtEpDevice** made, std::size_t most, std::size_t* number) -> OrtStatus* {
    return of(f).host_.guarded([&] {
      static_cast<factory*>(f)->name_devices({devices, count}, {made, most}, *number);
    });
  };
  CreateEp = [](OrtEpFactory* f, const OrtHardwareDevice* const* devices, const OrtKeyValuePairs* const*,
                std::size_t count, const OrtSessionOptions* session, const OrtLogger* log, OrtEp** made) -> OrtStatus* {
    return of(f).host_.guarded([&] { *made = new provider(of(f), {devices, count}, session, log); });
  };
  ReleaseEp = [](OrtEpFactory*, OrtEp* made) { delete static_cast<provider*>(made); };
  ValidateCompiledModelCompatibilityInfo = [](OrtEpFactory* f, const OrtHardwareDevice* const* devices,
                                              std::size_t count, const char* info, int* answer) -> OrtStatus* {
    return of(f).host_.guarded([&] {
      std::unique_ptr<target> t;
      for (std::size_t i = 0; i < count && !t; ++i)
        if (const gpu* const g = of(f).gpu_of(devices[i])) t = g->make_target({});
      *answer = static_cast<int>(judge_compatibility(info ? info : "", t ? *t : *named_target("cpu")));
    });
  };
  CreateAllocator = [](OrtEpFactory* f, const OrtMemoryInfo* memory, const OrtKeyValuePairs*,
                       OrtAllocator** made) -> OrtStatus* {
    return of(f).host_.guarded([&] {
      bool on_host = false;
      const gpu* const g = of(f).gpu_of(memory, on_host);
      *made = g ? new gpu_allocator(*g, on_host, {}) : nullptr;
    });
  };
  ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* made) { delete static_cast<gpu_allocator*>(made); };
  // ONNX Runtime calls this while it registers a library, without asking whether it is there.
  CreateDataTransfer = [](OrtEpFactory* f, OrtDataTransferImpl** made) -> OrtStatus* {
    return of(f).host_.guarded(
        [&] { *made = of(f).gpus_.empty() ? nullptr : new gpu_transfer(of(f).host_, of(f).gpus_); });
  };
  IsStreamAware = [](const OrtEpFactory* f) { return !of(f).gpus_.empty(); };
  CreateSyncStreamForDevice = [](OrtEpFactory* f, const OrtMemoryDevice* memory, const OrtKeyValuePairs*,
                                 OrtSyncStreamImpl** made) -> OrtStatus* {
    return of(f).host_.guarded([&] {
      *made = nullptr;
      for (const auto& g : of(f).gpus_)
        if (g->is_own(memory)) *made = new gpu_stream(*g);
    });
  };
}

factory::~factory() {
  host_.call(api::release_memory_info, host_memory_);
  for (OrtHardwareDevice* made : made_hardware_) host_.call_ep(ep_api::release_hardware, made);
}

const gpu* factory::gpu_of(const OrtHardwareDevice* device) const {
  const auto found = by_hardware_.find(device);
  return found == by_hardware_.end() ? nullptr : found->second;
}

const gpu* factory::gpu_of(const OrtMemoryInfo* memory, bool& on_host) const {
  const OrtMemoryDevice* const where = host_.call_ep(ep_api::device_of_memory, memory);
  for (const auto& g : gpus_) {
    on_host = host_.call_ep(ep_api::same_device, where, host_.call_ep(ep_api::device_of_memory, g->host_memory()));
    if (on_host || g->is_own(where)) return g.get();
  }
  return nullptr;
}

void factory::name_devices(std::span<const OrtHardwareDevice* const> devices, std::span<OrtEpDevice*> made,
                           std::size_t& number) {
  number = 0;
  for (const OrtHardwareDevice* const d : devices)
    if (number < made.size() && host_.call(api::hardware_type, d) == hardware::cpu)
      host_.call_ep(ep_api::create_device, this, d, nullptr, nullptr, &made[number++]);
  const std::size_t of_processor = number;
  try {
    name_gpus(devices, made, number);
  } catch (const error& e) {
    // the processor is offered all the same
    number = of_processor;
    kernels_.reset(), by_hardware_.clear(), gpus_.clear();
    host_.log(logger_, severity::warning, std::string("kiln: the GPUs of this machine are not offered: ") + e.what());
  }
}

void factory::name_gpus(std::span<const OrtHardwareDevice* const> devices, std::span<OrtEpDevice*> made,
                        std::size_t& number) {
  // before, devices of one session had to have their tensors in one memory, and programs pass all that they find
  if (host_.version() < default_memory_version) return;
  const std::vector<gpu_description> all = source_.list();
  std::vector<const OrtHardwareDevice*> known;
  for (const OrtHardwareDevice* const d : devices)
    if (host_.call(api::hardware_type, d) == hardware::gpu) known.push_back(d);
  for (std::size_t i = 0; i < all.size() && number < made.size(); ++i) {
    // in the order that ONNX Runtime found them in; where it found none, a device is made
    const auto at = std::find_if(known.begin(), known.end(), [&](const OrtHardwareDevice* d) {
      return host_.call(api::hardware_vendor, d) == all[i].vendor;
    });
    const OrtHardwareDevice* found = nullptr;
    if (at != known.end())
      found = *at, known.erase(at);
    else
      found = made_hardware_.emplace_back(hardware_of(all[i], static_cast<int>(i)));
    auto& g = gpus_.emplace_back(std::make_shared<gpu>(host_, source_, static_cast<int>(i), all[i]));
    by_hardware_[found] = g.get();
    OrtEpDevice* device = nullptr;
    host_.call_ep(ep_api::create_device, this, found, nullptr, nullptr, &device);
    made[number++] = device;
    host_.call_ep(ep_api::add_allocator, device, g->memory());
    host_.call_ep(ep_api::add_allocator, device, g->host_memory());
  }
  if (!gpus_.empty()) kernels_.emplace(host_, gpus_, name_);
}

OrtHardwareDevice* factory::hardware_of(const gpu_description& what, int index) const {
  OrtHardwareDevice* out = nullptr;
  host_.call_ep(ep_api::create_hardware, hardware::gpu, what.vendor, static_cast<std::uint32_t>(index),
                what.vendor_name.c_str(), nullptr, &out);
  return out;
}

}  // namespace kiln::onnxruntime
