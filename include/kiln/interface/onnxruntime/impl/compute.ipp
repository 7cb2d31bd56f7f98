#include "kiln/interface/onnxruntime/compute.hpp"

namespace kiln::onnxruntime {

node_runner& batch_program::get() {
  std::call_once(once_, [&] {
    made_ = make_();
    make_ = nullptr;
  });
  return *made_;
}

node_compute::node_compute(const host& ort, std::unique_ptr<node_runner> general)
    : OrtNodeComputeInfo{}, ort_(ort), general_(std::move(general)) {
  ort_version_supported = api_version;
  CreateState = [](OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) -> OrtStatus* {
    *state = nullptr;  // states belong to runs, not to the session
    return nullptr;
  };
  Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) -> OrtStatus* {
    auto& me = *static_cast<node_compute*>(self);
    return me.ort_.guarded([&] { me.runner_for(context).run(context); });
  };
  ReleaseState = [](OrtNodeComputeInfo*, void*) {};
}

void node_compute::add_batches(std::size_t input, std::vector<std::unique_ptr<batch_program>> programs) {
  batch_input_ = input;
  batches_ = std::move(programs);
}

node_runner& node_compute::runner_for(const OrtKernelContext* context) {
  if (batches_.empty()) return *general_;
  const auto* const value = ort_.get<const OrtValue*>(api::kernel_input, context, batch_input_);
  if (!value) return *general_;
  const auto extents = ort_.type_of(value).extents;
  for (const auto& b : batches_)
    if (!extents.empty() && extents[0] == b->batch()) return b->get();
  return *general_;
}

}  // namespace kiln::onnxruntime
