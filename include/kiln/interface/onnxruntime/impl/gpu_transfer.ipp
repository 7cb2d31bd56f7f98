#include "kiln/interface/onnxruntime/gpu_transfer.hpp"

#include "kiln/onnx/element.hpp"

namespace kiln::onnxruntime {

namespace {

std::size_t bytes_of(const tensor_type& t) {
  const auto type = onnx::to_dtype(static_cast<onnx::element>(t.element));
  if (!type || is_object(*type))
    raise(fault::of(errc::unsupported, "tensors of numbers are copied to a GPU: ONNX's element type", "a number's",
                    std::int64_t{t.element}));
  std::size_t n = 1;
  for (const std::int64_t d : t.extents) n *= static_cast<std::size_t>(d);
  return (n * static_cast<std::size_t>(bits_of(*type)) + 7) / 8;  // narrow numbers are packed
}

}  // namespace

gpu_transfer::gpu_transfer(const host& ort, const gpu_list& gpus) : OrtDataTransferImpl{}, ort_(ort), gpus_(gpus) {
  ort_version_supported = ort.version();
  Release = [](OrtDataTransferImpl* t) { delete static_cast<gpu_transfer*>(t); };
  CanCopy = [](const OrtDataTransferImpl* t, const OrtMemoryDevice* from, const OrtMemoryDevice* to) {
    return static_cast<const gpu_transfer*>(t)->can_copy(from, to);
  };
  CopyTensors = [](OrtDataTransferImpl* t, const OrtValue** from, OrtValue** to, OrtSyncStream** streams,
                   std::size_t count) -> OrtStatus* {
    const auto& own = *static_cast<gpu_transfer*>(t);
    return own.ort_.guarded([&] {
      for (std::size_t i = 0; i < count; ++i) {
        void* handle = nullptr;
        if (streams && streams[i])
          for (const auto& g : own.gpus_)
            if (gpu_stream* const s = g->stream_of(streams[i])) handle = s->GetHandle(s);
        own.copy(from[i], to[i], handle);
      }
    });
  };
}

const gpu* gpu_transfer::owner(const OrtMemoryDevice* memory) const {
  for (const auto& g : gpus_)
    if (g->is_own(memory)) return g.get();
  return nullptr;
}

bool gpu_transfer::can_copy(const OrtMemoryDevice* from, const OrtMemoryDevice* to) const {
  const auto is_host = [&](const OrtMemoryDevice* m) {
    return ort_.call_ep(ep_api::memory_hardware, m) == hardware::cpu ||
           ort_.call_ep(ep_api::memory_type_of, m) == memory_type::host_accessible;
  };
  const gpu *const a = owner(from), *const b = owner(to);
  return (a || b) && (a || is_host(from)) && (b || is_host(to));
}

void gpu_transfer::copy(const OrtValue* from, OrtValue* to, void* stream) const {
  const std::size_t bytes = bytes_of(ort_.type_of(from));
  if (bytes == 0) return;
  const gpu* of = owner(ort_.call_ep(ep_api::device_of_value, to));
  if (!of) of = owner(ort_.call_ep(ep_api::device_of_value, from));
  if (!of) raise(errc::invalid_argument, "a copy between the host and a GPU of kiln's: neither tensor is on one");
  const std::unique_ptr<device_queue> queue = of->where().make_queue(stream);
  queue->enter();
  queue->copy(ort_.get<void*>(api::tensor_data, to), ort_.get<void*>(api::tensor_data, const_cast<OrtValue*>(from)),
              bytes);
  if (!stream) queue->wait();
}

namespace {

class copy_kernel : public OrtKernelImpl {
 public:
  copy_kernel(const host& ort, const gpu_transfer& transfer) : OrtKernelImpl{}, ort_(ort), transfer_(transfer) {
    ort_version_supported = ort.version();
    Release = [](OrtKernelImpl* k) { delete static_cast<copy_kernel*>(k); };
    Compute = [](OrtKernelImpl* k, OrtKernelContext* context) -> OrtStatus* {
      const auto& own = *static_cast<copy_kernel*>(k);
      return own.ort_.guarded([&] { own.run(context); });
    };
  }

 private:
  void run(OrtKernelContext* context) const {
    const auto* const from = ort_.get<const OrtValue*>(api::kernel_input, context, std::size_t{0});
    const auto extents = ort_.type_of(from).extents;
    OrtValue* to = nullptr;
    ort_.call(api::kernel_output, context, 0, extents.data(), extents.size(), &to);
    transfer_.copy(from, to, ort_.get<void*>(api::kernel_stream, context));
  }
  const host& ort_;
  const gpu_transfer& transfer_;
};

}  // namespace

copy_kernels::copy_kernels(const host& ort, const gpu_list& gpus, const std::string& provider)
    : ort_(ort), transfer_(ort, gpus) {
  ort_.call_ep(ep_api::create_kernels, &registry_);
  const auto add = [&](const char* name, auto set_memory, kernel_memory where) {
    OrtKernelDefBuilder* builder = nullptr;
    ort_.call_ep(ep_api::create_definition, &builder);
    OrtKernelDef* made = nullptr;
    try {
      ort_.call_ep(ep_api::set_operator, builder, name);
      ort_.call_ep(ep_api::set_domain, builder, "");
      ort_.call_ep(ep_api::set_versions, builder, 1, 1);
      ort_.call_ep(ep_api::set_provider, builder, provider.c_str());
      ort_.call_ep(set_memory, builder, std::size_t{0}, where);
      ort_.call_ep(ep_api::build_definition, builder, &made);
      ort_.call_ep(
          ep_api::add_kernel, registry_, made,
          [](void* with, const OrtKernelInfo*, OrtKernelImpl** out) -> OrtStatus* {
            const auto& own = *static_cast<const copy_kernels*>(with);
            return own.ort_.guarded([&] { *out = new copy_kernel(own.ort_, own.transfer_); });
          },
          this);
    } catch (...) {
      if (made) ort_.call_ep(ep_api::release_definition, made);
      ort_.call_ep(ep_api::release_builder, builder);
      throw;
    }
    ort_.call_ep(ep_api::release_definition, made);
    ort_.call_ep(ep_api::release_builder, builder);
  };
  add("MemcpyFromHost", ep_api::set_input_memory, kernel_memory::cpu_input);
  add("MemcpyToHost", ep_api::set_output_memory, kernel_memory::cpu_output);
}

copy_kernels::~copy_kernels() { ort_.call_ep(ep_api::release_kernels, registry_); }

}  // namespace kiln::onnxruntime
