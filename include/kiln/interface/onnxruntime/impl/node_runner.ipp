#include "kiln/interface/onnxruntime/node_runner.hpp"

#include <algorithm>
#include <cstring>

#include "kiln/runtime/run_options.hpp"

namespace kiln::onnxruntime {

namespace {

std::size_t index_in(const std::vector<std::string>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    raise(errc::internal, "the fused node has no value '" + std::string(name) + "' of its graph");
  return static_cast<std::size_t>(found - names.begin());
}

std::size_t bytes_of(const argument& a) { return static_cast<std::size_t>(a.get_shape().bytes().value()); }

bool overlap(const argument& a, const argument& b) {
  return a.data() < b.data() + bytes_of(b) && b.data() < a.data() + bytes_of(a);
}

}  // namespace

// A state that no other run has, for as long as it lives.
class node_runner::state_lease {
 public:
  explicit state_lease(node_runner& of) : of_(of), state_(of.take_state()) {}
  state_lease(const state_lease&) = delete;
  state_lease& operator=(const state_lease&) = delete;
  ~state_lease() {
    state_->inputs.clear();
    state_->outputs.clear();
    const std::lock_guard lock(of_.guard_);
    of_.idle_.push_back(std::move(state_));
  }
  run_state& operator*() { return *state_; }

 private:
  node_runner& of_;
  std::unique_ptr<run_state> state_;
};

std::unique_ptr<node_runner::run_state> node_runner::take_state() {
  const std::lock_guard lock(guard_);
  if (idle_.empty()) {
    idle_.reserve(states_ + 1);  // giving a state back needs no memory
    auto made = std::make_unique<run_state>();
    ++states_;
    return made;
  }
  std::unique_ptr<run_state> taken = std::move(idle_.back());
  idle_.pop_back();
  return taken;
}

node_runner::node_runner(const host& ort, run_settings how, executable exe, const node_ports& own,
                         const node_ports& fused)
    : ort_(ort), how_(std::move(how)), exe_(std::move(exe)) {
  for (const std::string& name : own.inputs) inputs_.push_back(index_in(fused.inputs, name));
  for (const std::string& name : own.outputs) outputs_.push_back(index_in(fused.outputs, name));
}

node_runner::~node_runner() = default;

void node_runner::run(OrtKernelContext* context) {
  const memory_scope memory(how_.memory);
  state_lease lease(*this);
  run_state& s = *lease;
  take_inputs(s, context);
  s.outputs.resize(outputs_.size()), s.aside.resize(outputs_.size());
  std::vector<OrtValue*> bound(outputs_.size());
  std::vector<bool> direct(outputs_.size());
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (!s.is_known[k]) continue;
    bound[k] = output_value(context, k, s.made[k]);
    s.outputs[k] = memory_of(s, k, bound[k]);
    direct[k] = s.outputs[k].data() == ort_.get<void*>(api::tensor_data, bound[k]);
  }
  run_program(s);
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (direct[k]) continue;
    const argument made = s.outputs[k].contiguous();
    std::vector<std::int64_t> extents;
    for (const dimension& d : made.get_shape().lens) extents.push_back(d.value());
    if (!bound[k]) bound[k] = output_value(context, k, extents);
    if (bytes_of(made) != 0) std::memcpy(ort_.get<void*>(api::tensor_data, bound[k]), made.data(), bytes_of(made));
  }
}

void node_runner::run_program(run_state& s) const {
  const bool is_traced = how_.trace && how_.trace->is_on();
  if (!how_.stream && !is_traced) return exe_.run(s.memory, s.inputs, s.outputs);
  run_options how;
  how.stream = how_.stream;
  if (is_traced)
    how.profile = [&](std::size_t step, double seconds) {
      const step_info& i = exe_.report().steps[step];
      how_.trace->add(i.kernel, i.instruction, seconds);
    };
  exe_.run(s.memory, s.inputs, s.outputs, how);
}

// Where an output of known extents is computed: in the caller's memory, but where that is an input's, which the run
// still reads while it writes.
argument node_runner::memory_of(run_state& s, std::size_t k, OrtValue* bound) const {
  shape type{exe_.outputs()[k].type.type, {}};
  for (const std::int64_t d : s.made[k]) type.lens.push_back(d);
  argument out(type, ort_.get<void*>(api::tensor_data, bound));
  if (std::none_of(s.inputs.begin(), s.inputs.end(), [&](const argument& in) { return overlap(in, out); })) return out;
  if (!s.aside[k] || s.aside[k].get_shape() != type) s.aside[k] = argument(type);
  return s.aside[k];
}

void node_runner::take_inputs(run_state& s, OrtKernelContext* context) const {
  std::vector<std::int64_t> all;
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    const auto* const value = ort_.get<const OrtValue*>(api::kernel_input, context, inputs_[k]);
    if (!value) raise(errc::invalid_argument, "input '" + exe_.inputs()[k].name + "' has no value");
    const std::size_t from = all.size() + 1;
    read_extents(value, all);
    shape type{exe_.inputs()[k].type.type, {}};
    for (std::size_t d = from; d < all.size(); ++d) type.lens.push_back(all[d]);
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

// Appends a tensor's rank and extents.
void node_runner::read_extents(const OrtValue* value, std::vector<std::int64_t>& to) const {
  const std::size_t at = to.size();
  to.push_back(0);
  const std::size_t rank = ort_.append_extents(value, to);
  to[at] = static_cast<std::int64_t>(rank);
  if (rank > max_rank)
    raise(fault::of(errc::limit, "tensors have at most 8 dims: rank of an input", 8, static_cast<std::int64_t>(rank)));
}

OrtValue* node_runner::output_value(OrtKernelContext* context, std::size_t k,
                                    const std::vector<std::int64_t>& extents) const {
  OrtValue* value = nullptr;
  ort_.call(api::kernel_output, context, outputs_[k], extents.data(), extents.size(), &value);
  return value;
}

}  // namespace kiln::onnxruntime
