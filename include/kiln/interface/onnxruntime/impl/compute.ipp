#include "kiln/interface/onnxruntime/compute.hpp"

#include <algorithm>
#include <cstring>

namespace kiln::onnxruntime {

namespace {

std::size_t index_in(const std::vector<std::string>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    raise(errc::internal, "the fused node has no value '" + std::string(name) + "' of its graph");
  return static_cast<std::size_t>(found - names.begin());
}

std::size_t bytes_of(const argument& a) { return static_cast<std::size_t>(a.elements()) * size_of(a.get_shape().type); }

bool overlap(const argument& a, const argument& b) {
  return a.data() < b.data() + bytes_of(b) && b.data() < a.data() + bytes_of(a);
}

}  // namespace

// A state that no other run has, for as long as it lives.
class node_compute::state_lease {
 public:
  explicit state_lease(node_compute& of) : of_(of) {
    const std::lock_guard lock(of.guard_);
    if (of.idle_.empty()) return;
    state_ = std::move(of.idle_.back());
    of.idle_.pop_back();
  }
  state_lease(const state_lease&) = delete;
  state_lease& operator=(const state_lease&) = delete;
  ~state_lease() {
    state_->inputs.clear();
    state_->outputs.clear();
    const std::lock_guard lock(of_.guard_);
    of_.idle_.push_back(std::move(state_));
  }
  run_state& operator*() {
    if (!state_) state_ = std::make_unique<run_state>();
    return *state_;
  }

 private:
  node_compute& of_;
  std::unique_ptr<run_state> state_;
};

node_compute::node_compute(const host& ort, executable exe, const node_ports& own, const node_ports& fused)
    : OrtNodeComputeInfo{}, ort_(ort), exe_(std::move(exe)) {
  for (const std::string& name : own.inputs) inputs_.push_back(index_in(fused.inputs, name));
  for (const std::string& name : own.outputs) outputs_.push_back(index_in(fused.outputs, name));
  ort_version_supported = api_version;
  CreateState = [](OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) -> OrtStatus* {
    *state = nullptr;  // states belong to runs, not to the session
    return nullptr;
  };
  Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) -> OrtStatus* {
    auto& me = *static_cast<node_compute*>(self);
    return me.ort_.guarded([&] { me.run(context); });
  };
  ReleaseState = [](OrtNodeComputeInfo*, void*) {};
}

void node_compute::run(OrtKernelContext* context) {
  state_lease lease(*this);
  run_state& s = *lease;
  take_inputs(s, context);
  s.outputs.resize(outputs_.size());
  std::vector<OrtValue*> bound(outputs_.size());
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (!s.is_known[k]) continue;
    bound[k] = output_value(context, k, s.made[k]);
    shape type{exe_.outputs()[k].type.type, {}};
    for (const std::int64_t d : s.made[k]) type.lens.push_back(d);
    argument out(type, ort_.get<void*>(api::tensor_data, bound[k]));
    // the caller may have bound an input's memory, which the run still reads while it writes
    if (std::none_of(s.inputs.begin(), s.inputs.end(), [&](const argument& in) { return overlap(in, out); }))
      s.outputs[k] = std::move(out);
  }
  std::vector<bool> direct(outputs_.size());
  for (std::size_t k = 0; k < outputs_.size(); ++k) direct[k] = static_cast<bool>(s.outputs[k]);
  exe_.run(s.memory, s.inputs, s.outputs);
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (direct[k]) continue;
    const argument made = s.outputs[k].contiguous();
    std::vector<std::int64_t> extents;
    for (const dimension& d : made.get_shape().lens) extents.push_back(d.value());
    if (!bound[k]) bound[k] = output_value(context, k, extents);
    if (bytes_of(made) != 0) std::memcpy(ort_.get<void*>(api::tensor_data, bound[k]), made.data(), bytes_of(made));
  }
}

void node_compute::take_inputs(run_state& s, OrtKernelContext* context) const {
  std::int64_t extents[max_rank];
  std::vector<std::int64_t> all;
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    const auto* const value = ort_.get<const OrtValue*>(api::kernel_input, context, inputs_[k]);
    if (!value) raise(errc::invalid_argument, "input '" + exe_.inputs()[k].name + "' has no value");
    auto* const info = ort_.get<OrtTensorTypeAndShapeInfo*>(api::tensor_info_of_value, value);
    const auto rank = ort_.get<std::size_t>(api::rank, info);
    if (rank <= max_rank) ort_.call(api::extents, info, extents, rank);
    ort_.call(api::release_tensor_info, info);
    if (rank > max_rank)
      raise(
          fault::of(errc::limit, "tensors have at most 8 dims: rank of an input", 8, static_cast<std::int64_t>(rank)));
    shape type{exe_.inputs()[k].type.type, {}};
    for (std::size_t d = 0; d < rank; ++d) type.lens.push_back(extents[d]);
    all.push_back(static_cast<std::int64_t>(rank));
    all.insert(all.end(), extents, extents + rank);
    s.inputs.emplace_back(type, ort_.get<void*>(api::tensor_data, const_cast<OrtValue*>(value)));
  }
  if (all == s.extents && s.made.size() == outputs_.size()) return;
  std::vector<shape> given;
  for (const argument& a : s.inputs) given.push_back(a.get_shape());
  s.made.clear(), s.is_known.clear();
  for (const shape& out : exe_.output_shapes(given)) {
    std::vector<std::int64_t> lens;
    bool known = true;
    for (const dimension& d : out.lens) {
      known = known && d.is_constant();
      if (known) lens.push_back(d.value());
    }
    s.made.push_back(std::move(lens));
    s.is_known.push_back(known);
  }
  s.extents = std::move(all);
}

OrtValue* node_compute::output_value(OrtKernelContext* context, std::size_t k,
                                     const std::vector<std::int64_t>& extents) const {
  OrtValue* value = nullptr;
  ort_.call(api::kernel_output, context, outputs_[k], extents.data(), extents.size(), &value);
  return value;
}

}  // namespace kiln::onnxruntime
