#include "kiln/interface/onnxruntime/gpu.hpp"

#include "kiln/interface/onnxruntime/gpu_allocator.hpp"
#include "kiln/interface/onnxruntime/gpu_stream.hpp"

namespace kiln::onnxruntime {

namespace {

constexpr int device_allocator = 0;  // OrtDeviceAllocator: memory as it is, without an arena of ONNX Runtime's

}  // namespace

gpu::gpu(const host& ort, const gpu_source& source, int index, const gpu_description& what)
    : ort_(ort), source_(source), index_(index), vendor_(what.vendor) {
  const auto memory_info = [&](const char* name, memory_type type) {
    return ort_.get<OrtMemoryInfo*>(api::create_memory_info, name, hardware::gpu, vendor_, std::int32_t{index_}, type,
                                    std::size_t{0}, device_allocator);
  };
  memory_ = memory_info("kiln", memory_type::of_device);
  try {
    host_memory_ = memory_info("kiln_host", memory_type::host_accessible);
  } catch (...) {
    ort_.call(api::release_memory_info, memory_);
    throw;
  }
}

gpu::~gpu() {
  ort_.call(api::release_memory_info, host_memory_);
  ort_.call(api::release_memory_info, memory_);
}

const device& gpu::where() const {
  std::call_once(once_, [&] { where_ = source_.make(index_, {})->get_device(); });
  return *where_;
}

gpu_stream* gpu::stream_of(const OrtSyncStream* stream) const {
  if (!stream) return nullptr;
  // found by its address: it may be another provider's
  const auto* const made = static_cast<const gpu_stream*>(ort_.call_ep(ep_api::stream_impl, stream));
  const std::lock_guard lock(guard_);
  return streams_.contains(made) ? const_cast<gpu_stream*>(made) : nullptr;
}

void gpu::stream_ends(const gpu_stream* stream) const {
  const std::lock_guard lock(guard_);
  streams_.erase(stream);
  for (gpu_allocator* a : allocators_) a->forget(stream);
}

}  // namespace kiln::onnxruntime
