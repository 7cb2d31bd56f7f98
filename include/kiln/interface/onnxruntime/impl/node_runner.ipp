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

std::size_t bytes_of(const shape& s) { return static_cast<std::size_t>(s.bytes().value()); }

}  // namespace

// A state that no other run has, for as long as it lives.
class node_runner::state_lease {
 public:
  state_lease(node_runner& of, void* stream) : of_(of), state_(of.take_state(stream)) {}
  state_lease(const state_lease&) = delete;
  state_lease& operator=(const state_lease&) = delete;
  ~state_lease() {
    state_->outputs.clear();  // what only the run could size is the run's own
    const std::lock_guard lock(of_.guard_);
    of_.idle_.push_back(std::move(state_));
  }
  run_state& operator*() { return *state_; }

 private:
  node_runner& of_;
  std::unique_ptr<run_state> state_;
};

// One whose last run was given to the same stream comes first: its memory need not be waited for.
std::unique_ptr<node_runner::run_state> node_runner::take_state(void* stream) {
  const std::lock_guard lock(guard_);
  if (idle_.empty()) {
    idle_.reserve(states_ + 1);  // giving a state back needs no memory
    auto made = std::make_unique<run_state>();
    ++states_;
    return made;
  }
  const auto same = std::find_if(idle_.begin(), idle_.end(), [&](const auto& s) { return s->stream == stream; });
  if (same != idle_.end()) std::swap(*same, idle_.back());
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
  void* const stream = stream_of(context);
  state_lease lease(*this, stream);
  run_state& s = *lease;
  if (s.stream != stream) wait_for_last(s, stream);
  s.stream = stream;
  // ONNX Runtime copies on its own stream: a caller's stream comes after that, and that after it
  void* const of_host = how_.stream && how_.where ? ort_.get<void*>(api::kernel_stream, context) : nullptr;
  if (of_host) order(of_host, stream);
  try {
    take_inputs(s, context);
    take_outputs(s, context);
    run_program(s);
    give_outputs(s, context);
  } catch (...) {
    if (stream) how_.where->make_queue(stream)->wait();  // the state's memory is another run's next
    throw;
  }
  if (stream) s.is_done = how_.where->make_queue(stream)->record();
  if (of_host) order(stream, of_host);
}

// Work given to `second` from now on begins when that of `first` is done.
void node_runner::order(void* first, void* second) const {
  const std::unique_ptr<device_event> done = how_.where->make_queue(first)->record();
  how_.where->make_queue(second)->wait_for(*done);
}

void* node_runner::stream_of(OrtKernelContext* context) const {
  if (how_.stream || !how_.where) return how_.stream;
  return ort_.get<void*>(api::kernel_stream, context);
}

// The memory of a state is its last run's until that is done: work on another stream, or by the host, comes after it.
void node_runner::wait_for_last(run_state& s, void* stream) const {
  if (!s.is_done) return;
  if (stream) {
    const auto queue = how_.where->make_queue(stream);
    queue->enter();
    queue->wait_for(*s.is_done);
  } else {
    s.is_done->wait();
  }
}

void node_runner::run_program(run_state& s) const {
  const bool is_traced = how_.trace && how_.trace->is_on();
  if (!s.stream && !is_traced) return exe_.run(s.memory, s.inputs, s.outputs);
  run_options how;
  if (!is_traced) {
    how.stream = s.stream;
  } else if (s.stream) {
    how_.where->make_queue(s.stream)->wait();  // a run that is timed has a stream of its own
  }
  if (is_traced)
    how.profile = [&](std::size_t step, double seconds) {
      const step_info& i = exe_.report().steps[step];
      how_.trace->add(i.kernel, i.instruction, seconds);
    };
  exe_.run(s.memory, s.inputs, s.outputs, how);
}

void node_runner::take_inputs(run_state& s, OrtKernelContext* context) const {
  s.given.clear(), s.places.clear();
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    const auto* const value = ort_.get<const OrtValue*>(api::kernel_input, context, inputs_[k]);
    if (!value) raise(errc::invalid_argument, "input '" + exe_.inputs()[k].name + "' has no value");
    const auto extents = ort_.type_of(value).extents;
    s.given.push_back(static_cast<std::int64_t>(extents.size()));
    s.given.insert(s.given.end(), extents.begin(), extents.end());
    s.places.push_back(static_cast<std::byte*>(ort_.get<void*>(api::tensor_data, const_cast<OrtValue*>(value))));
  }
  if (!s.is_sized || s.given != s.extents) size(s);
  for (std::size_t k = 0; k < inputs_.size(); ++k) s.inputs[k] = argument(s.inputs[k].get_shape(), s.places[k]);
}

// Shapes of inputs and outputs, and what follows from them, for `given`.
void node_runner::size(run_state& s) const {
  if (s.is_done) s.is_done->wait();  // placing tensors anew writes into memory that the last run reads
  s.is_sized = false;                // until all of it has succeeded
  s.inputs.clear(), s.input_bytes.clear(), s.made.clear();
  std::vector<shape> shapes;
  auto at = s.given.begin();
  for (const port& p : exe_.inputs()) {
    shape& in = shapes.emplace_back(p.type.type, dims{});
    const std::int64_t rank = *at++;
    if (rank > static_cast<std::int64_t>(max_rank))
      raise(fault::of(errc::limit, "tensors have at most 8 dims: rank of input '" + p.name + "'", 8, rank));
    for (std::int64_t d = 0; d < rank; ++d) in.lens.push_back(*at++);
    s.inputs.emplace_back(in, nullptr);
    s.input_bytes.push_back(bytes_of(in));
  }
  for (const shape& out : exe_.output_shapes(shapes)) {
    run_output& m = s.made.emplace_back();
    m.type = out;
    m.is_known = out.is_constant();
    if (!m.is_known) continue;
    m.bytes = bytes_of(out);
    for (const dimension& d : out.lens) m.extents.push_back(d.value());
  }
  s.extents = s.given;
  s.is_sized = true;
}

bool node_runner::meets_an_input(const run_state& s, const std::byte* data, std::size_t bytes) const {
  for (std::size_t k = 0; k < s.places.size(); ++k)
    if (data < s.places[k] + s.input_bytes[k] && s.places[k] < data + bytes) return true;
  return false;
}

// Outputs of known extents are computed in the caller's memory, but where that is an input's, which the run still reads
// while it writes.
void node_runner::take_outputs(run_state& s, OrtKernelContext* context) const {
  s.outputs.resize(outputs_.size());
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    run_output& m = s.made[k];
    m.bound = nullptr, m.is_direct = false;
    if (!m.is_known) continue;
    ort_.call(api::kernel_output, context, outputs_[k], m.extents.data(), m.extents.size(), &m.bound);
    auto* const data = static_cast<std::byte*>(ort_.get<void*>(api::tensor_data, m.bound));
    m.is_direct = !meets_an_input(s, data, m.bytes);
    if (!m.is_direct && !m.aside) m.aside = argument(m.type);
    s.outputs[k] = m.is_direct ? argument(m.type, data) : m.aside;
  }
}

void node_runner::give_outputs(run_state& s, OrtKernelContext* context) const {
  const bool all_direct = std::all_of(s.made.begin(), s.made.end(), [](const run_output& m) { return m.is_direct; });
  if (s.stream && !all_direct) how_.where->make_queue(s.stream)->wait();
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    run_output& m = s.made[k];
    if (m.is_direct) continue;
    const argument made = s.outputs[k].contiguous();
    if (!m.bound) {
      std::vector<std::int64_t> extents;
      for (const dimension& d : made.get_shape().lens) extents.push_back(d.value());
      ort_.call(api::kernel_output, context, outputs_[k], extents.data(), extents.size(), &m.bound);
    }
    if (const std::size_t bytes = bytes_of(made.get_shape()))
      copy_out(ort_.get<void*>(api::tensor_data, m.bound), made, bytes);
  }
}

void node_runner::copy_out(void* to, const argument& from, std::size_t bytes) const {
  if (!how_.where) {
    std::memcpy(to, from.data(), bytes);
    return;
  }
  const auto queue = how_.where->make_queue();
  queue->enter();
  queue->copy(to, from.data(), bytes);
  queue->wait();
}

}  // namespace kiln::onnxruntime
