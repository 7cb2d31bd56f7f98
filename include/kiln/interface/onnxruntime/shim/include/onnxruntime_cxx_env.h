#ifndef KILN_ONNXRUNTIME_CXX_ENV_H
#define KILN_ONNXRUNTIME_CXX_ENV_H
#include <onnxruntime_cxx_base.h>

/* The process's environment, its thread pools and its devices. */

namespace Ort {

/// A piece of hardware, as ONNX Runtime found it.
struct ConstHardwareDevice : detail::Base<detail::Unowned<const OrtHardwareDevice>> {
  using Base::Base;
  OrtHardwareDeviceType Type() const { return GetApi().HardwareDevice_Type(p_); }
  std::uint32_t VendorId() const { return GetApi().HardwareDevice_VendorId(p_); }
  std::uint32_t DeviceId() const { return GetApi().HardwareDevice_DeviceId(p_); }
  const char* Vendor() const { return GetApi().HardwareDevice_Vendor(p_); }
};

/// A provider on a piece of hardware.
struct ConstEpDevice : detail::Base<detail::Unowned<const OrtEpDevice>> {
  using Base::Base;
  const char* EpName() const { return GetApi().EpDevice_EpName(p_); }
  const char* EpVendor() const { return GetApi().EpDevice_EpVendor(p_); }
  ConstHardwareDevice Device() const { return ConstHardwareDevice(GetApi().EpDevice_Device(p_)); }
};

/// Thread pools that all sessions share.
struct ThreadingOptions : detail::Base<OrtThreadingOptions> {
  ThreadingOptions() : Base(detail::get<OrtThreadingOptions*>(&OrtApi::CreateThreadingOptions)) {}
  ThreadingOptions& SetGlobalIntraOpNumThreads(int n) { return did(GetApi().SetGlobalIntraOpNumThreads(p_, n)); }
  ThreadingOptions& SetGlobalInterOpNumThreads(int n) { return did(GetApi().SetGlobalInterOpNumThreads(p_, n)); }
  ThreadingOptions& SetGlobalSpinControl(int spin) { return did(GetApi().SetGlobalSpinControl(p_, spin)); }
  ThreadingOptions& SetGlobalDenormalAsZero() { return did(GetApi().SetGlobalDenormalAsZero(p_)); }

 private:
  ThreadingOptions& did(OrtStatus* status) {
    ThrowOnError(status);
    return *this;
  }
};

/// The environment, of which a process has one: others are references to it. Sessions must not outlive the last.
struct Env : detail::Base<OrtEnv> {
  explicit Env(std::nullptr_t) {}
  explicit Env(OrtEnv* p) : Base(p) {}
  Env(OrtLoggingLevel level = ORT_LOGGING_LEVEL_WARNING, const char* logid = "") {
    ThrowOnError(GetApi().CreateEnv(level, logid, &p_));
    named();
  }
  Env(OrtLoggingLevel level, const char* logid, OrtLoggingFunction log, void* param) {
    ThrowOnError(GetApi().CreateEnvWithCustomLogger(log, param, level, logid, &p_));
    named();
  }
  Env(const OrtThreadingOptions* threads, OrtLoggingLevel level = ORT_LOGGING_LEVEL_WARNING, const char* logid = "") {
    ThrowOnError(GetApi().CreateEnvWithGlobalThreadPools(level, logid, threads, &p_));
    named();
  }
  Env(const OrtThreadingOptions* threads, OrtLoggingFunction log, void* param,
      OrtLoggingLevel level = ORT_LOGGING_LEVEL_WARNING, const char* logid = "") {
    ThrowOnError(GetApi().CreateEnvWithCustomLoggerAndGlobalThreadPools(log, param, level, logid, threads, &p_));
    named();
  }

  Env& EnableTelemetryEvents() { return did(GetApi().EnableTelemetryEvents(p_)); }
  Env& DisableTelemetryEvents() { return did(GetApi().DisableTelemetryEvents(p_)); }
  Env& UpdateEnvWithCustomLogLevel(OrtLoggingLevel level) {
    return did(GetApi().UpdateEnvWithCustomLogLevel(p_, level));
  }
  Env& CreateAndRegisterAllocator(const OrtMemoryInfo* info, const OrtArenaCfg* arena) {
    return did(GetApi().CreateAndRegisterAllocator(p_, info, arena));
  }
  /// The path is absolute.
  Env& RegisterExecutionProviderLibrary(const char* name, const std::basic_string<ORTCHAR_T>& path) {
    return did(GetApi().RegisterExecutionProviderLibrary(p_, name, path.c_str()));
  }
  Env& UnregisterExecutionProviderLibrary(const char* name) {
    return did(GetApi().UnregisterExecutionProviderLibrary(p_, name));
  }
  std::vector<ConstEpDevice> GetEpDevices() const {
    const OrtEpDevice* const* devices = nullptr;
    std::size_t count = 0;
    ThrowOnError(GetApi().GetEpDevices(p_, &devices, &count));
    std::vector<ConstEpDevice> out;
    for (std::size_t i = 0; i < count; ++i) out.emplace_back(devices[i]);
    return out;
  }

 private:
  void named() { did(GetApi().SetLanguageProjection(p_, ORT_PROJECTION_CPLUSPLUS)); }
  Env& did(OrtStatus* status) {
    ThrowOnError(status);
    return *this;
  }
};

}  // namespace Ort
#endif
