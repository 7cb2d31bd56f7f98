#include <algorithm>

#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/impl/executable_state.hpp"
#include "kiln/runtime/run_options.hpp"
#include "kiln/runtime/thread_pool.hpp"

// Runs of programs for a target with a device: what the caller has in the host's memory is copied at the edges, steps
// are given to a queue, and the same run again is replayed as a whole.
namespace kiln {
namespace {

using detail::aligned;

std::size_t bytes_of(const argument& a) { return static_cast<std::size_t>(a.elements()) * size_of(a.get_shape().type); }

// What a tensor reaches, from its lowest element to its highest.
struct reach {
  std::int64_t low = 0, high = 0;  // elements from the first one
  explicit reach(const tensor& t) {
    if (t.elements() == 0) return;
    high = 1;
    for (std::size_t d = 0; d < t.rank(); ++d) (t.strides[d] < 0 ? low : high) += t.strides[d] * (t.lens[d] - 1);
  }
  std::size_t bytes(const tensor& t) const { return static_cast<std::size_t>(high - low) * size_of(t.type); }
};

// The host's copies of tensors on the device.
class mirror {
 public:
  mirror(device_queue& queue, std::span<const tensor> from) {
    std::size_t bytes = 0;
    for (const tensor& t : from) bytes += aligned(reach(t).bytes(t));
    memory_ = buffer::allocate(std::max<std::size_t>(bytes, 64));
    std::byte* at = memory_.data();
    for (const tensor& t : from) {
      const reach r(t);
      const std::int64_t before = r.low * static_cast<std::int64_t>(size_of(t.type));
      if (r.bytes(t) != 0) queue.copy(at, t.data + before, r.bytes(t));
      tensors_.push_back(t);
      tensors_.back().data = at - before;
      at += aligned(r.bytes(t));
    }
  }
  std::span<const tensor> tensors() const { return {tensors_.data(), tensors_.size()}; }

 private:
  buffer memory_;
  std::vector<tensor> tensors_;
};

class host_step final : public kernel {
 public:
  explicit host_step(std::unique_ptr<kernel> of_host) : run_(std::move(of_host)) {}
  std::string name() const override { return run_->name() + " on the host"; }
  bool is_fallback() const override { return true; }
  stride_support input_strides(std::size_t i) const override { return run_->input_strides(i); }
  bool packed_input(std::size_t i) const override { return run_->packed_input(i); }
  std::size_t packed_bytes() const override { return run_->packed_bytes(); }
  void run(const launch& l) const override {
    const mirror in(*l.queue, l.in), out(*l.queue, l.out);
    l.queue->wait();
    const buffer scratch =
        buffer::allocate(std::max<std::size_t>(run_->scratch_bytes(in.tensors(), out.tensors(), l.pool->size()), 64));
    launch here{
        in.tensors(), out.tensors(), {const_cast<std::byte*>(scratch.data()), scratch.size()}, l.pool, l.symbols};
    run_->run(here);
    for (std::size_t k = 0; k < l.out.size(); ++k) {
      const reach r(l.out[k]);
      if (r.bytes(l.out[k]) != 0) l.queue->copy(l.out[k].data, out.tensors()[k].data, r.bytes(l.out[k]));
    }
    l.queue->wait();  // the copies read memory that goes now
  }

 private:
  std::unique_ptr<kernel> run_;
};

}  // namespace

std::unique_ptr<kernel> make_host_step(std::unique_ptr<kernel> of_host) {
  return std::make_unique<host_step>(std::move(of_host));
}

// One piece of the device's memory holds all constants for good; the host's copies go.
void executable::state::upload_constants() {
  constant_offsets.assign(plan.storages.size(), 0);
  std::size_t bytes = 0;
  for (std::size_t s = 0; s < plan.storages.size(); ++s)
    if (plan.storages[s].kind == detail::place_kind::constant) {
      constant_offsets[s] = bytes;
      bytes += aligned(static_cast<std::size_t>(plan.storages[s].constant.get_shape().bytes().value()));
    }
  if (bytes == 0) return;
  const std::unique_ptr<device_queue> queue = where->make_queue();
  queue->enter();
  device_constants = where->allocate(bytes);
  for (std::size_t s = 0; s < plan.storages.size(); ++s) {
    detail::storage& st = plan.storages[s];
    if (st.kind != detail::place_kind::constant) continue;
    if (const auto n = static_cast<std::size_t>(st.constant.get_shape().bytes().value()))
      queue->copy(device_constants.data() + constant_offsets[s], st.constant.bytes(), n);
  }
  queue->wait();
  for (detail::storage& st : plan.storages) st.constant = literal();
}

void executable::state::bind_device(workspace::state& w) const {
  if (!where) return;
  if (!w.queue) w.queue = where->make_queue();
  w.queue->enter();
  std::vector<std::vector<std::byte>> encoded;
  for (std::size_t s = 0; s < plan.storages.size(); ++s) {
    const detail::storage& st = plan.storages[s];
    if (st.kind == detail::place_kind::arena || st.kind == detail::place_kind::symbolic)
      w.bases[s] = w.arena.data() + w.offsets[s];
    else if (st.kind == detail::place_kind::constant)
      w.bases[s] = const_cast<std::byte*>(device_constants.data()) + constant_offsets[s];
    if (st.values.empty()) continue;
    auto& bytes = encoded.emplace_back(st.values.size() * size_of(st.type));
    for (std::size_t n = 0; n < st.values.size(); ++n)
      encode(st.type, &w.sizes[st.values[n]], bytes.data() + n * size_of(st.type), 1);
    w.queue->copy(w.bases[s], bytes.data(), bytes.size());
  }
  if (reports_faults && !w.faults) w.faults = where->allocate(sizeof(std::int32_t));
  w.queue->wait();
}

// Room on the device for a storage of the caller's: none where the caller has it there already.
std::size_t executable::state::edge_bytes(std::size_t s, std::span<const argument> given_inputs,
                                          std::span<argument> given_outputs) const {
  const detail::storage& st = plan.storages[s];
  if (st.kind == detail::place_kind::input) {
    const argument& a = given_inputs[st.index];
    return where->owns(a.data()) && staged_bytes(st.index, a) == 0 ? 0 : aligned(bytes_of(a));
  }
  if (st.kind != detail::place_kind::output || where->owns(given_outputs[st.index].data())) return 0;
  const detail::growing_output* g = grows(st.index);
  if (!g) return aligned(bytes_of(given_outputs[st.index]));
  const shape& from = given_inputs[g->input].get_shape();
  std::size_t n = size_of(from.type) * static_cast<std::size_t>(capacity(*g, from));
  for (std::size_t d = 0; d < from.rank(); ++d)
    if (d != g->axis) n *= static_cast<std::size_t>(from.lens[d].raw());
  return aligned(n);
}

void executable::state::place_edges(workspace::state& w, std::span<const argument> given_inputs,
                                    std::span<argument> given_outputs) const {
  std::size_t bytes = 0;
  std::vector<std::size_t> room(plan.storages.size());
  for (std::size_t s = 0; s < plan.storages.size(); ++s) bytes += room[s] = edge_bytes(s, given_inputs, given_outputs);
  const std::uint64_t owner = w.owner;
  w.grow(w.edges, bytes);
  w.owner = owner;
  std::byte* at = w.edges.data();
  for (std::size_t s = 0; s < plan.storages.size(); ++s) {
    const detail::storage& st = plan.storages[s];
    if (st.kind == detail::place_kind::input)
      w.bases[s] = room[s] ? at : const_cast<std::byte*>(given_inputs[st.index].data());  // kernels only read it
    else if (st.kind == detail::place_kind::output)
      w.bases[s] = room[s] ? at : given_outputs[st.index].data();
    at += room[s];
  }
}

void executable::state::upload_inputs(workspace::state& w, device_queue& queue, std::span<const argument> given_inputs,
                                      std::span<argument> given_outputs) const {
  for (std::size_t s = 0; s < plan.storages.size(); ++s) {
    const detail::storage& st = plan.storages[s];
    if (st.kind == detail::place_kind::output) {
      const detail::growing_output* g = grows(st.index);
      if (g && w.bases[s] != given_outputs[st.index].data())
        queue.copy(w.bases[s], given_inputs[g->input].data(), edge_bytes(s, given_inputs, given_outputs));
    }
    if (st.kind != detail::place_kind::input) continue;
    const argument& a = given_inputs[st.index];
    if (a.data() == w.bases[s] || bytes_of(a) == 0) continue;
    if (staged_bytes(st.index, a) == 0) {
      queue.copy(w.bases[s], a.data(), bytes_of(a));
      continue;
    }
    const ints lens = to_ints(a.get_shape().lens);
    const tensor from{const_cast<std::byte*>(a.data()), a.get_shape().type, lens, to_ints(a.get_shape().strides)};
    if (where->owns(a.data())) {
      const tensor to{w.bases[s], from.type, lens, row_major(lens)};
      launch l{{&from, 1}, {&to, 1}, {}, pool.get()};
      l.queue = &queue;
      copy->run(l);
    } else {
      const argument dense = a.contiguous();
      queue.copy(w.bases[s], dense.data(), bytes_of(a));
      queue.wait();
    }
  }
}

void executable::state::download_outputs(const workspace::state& w, device_queue& queue,
                                         std::span<argument> given) const {
  for (std::size_t s = 0; s < plan.storages.size(); ++s) {
    const detail::storage& st = plan.storages[s];
    if (st.kind != detail::place_kind::output || w.bases[s] == given[st.index].data()) continue;
    argument& a = given[st.index];
    std::size_t n = bytes_of(a);
    if (grows(st.index)) {  // its gaps hold what was uploaded
      const shape& t = a.get_shape();
      const dims strides = t.element_strides();
      n = size_of(t.type);
      for (std::size_t d = 0; d < t.rank(); ++d)
        n += size_of(t.type) * static_cast<std::size_t>(strides[d].raw() * (t.lens[d].raw() - 1));
    }
    if (n != 0 && a.elements() != 0) queue.copy(a.data(), w.bases[s], n);
  }
}

void executable::state::run_steps(workspace::state& w, device_queue& queue, const run_options& options) const {
  if (options.profile) queue.mark();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    if (options.cancel && options.cancel->load(std::memory_order_relaxed))
      raise(errc::cancelled, "the run was stopped before step " + std::to_string(i));
    const detail::step& st = plan.steps[i];
    const std::span<const tensor> all(w.tensors.data() + st.first_operand, st.inputs + st.outputs);
    const launch l{all.first(st.inputs),
                   all.subspan(st.inputs),
                   {w.arena.data() + w.scratch_offset, w.scratch_bytes},
                   pool.get(),
                   &w.values,
                   false,
                   &queue,
                   reinterpret_cast<std::int32_t*>(w.faults.data())};
    try {
      st.run->run(l);
      if (options.observe) {
        const mirror seen(queue, l.out);
        queue.wait();
        options.observe(i, seen.tensors());
      }
    } catch (error& e) {
      throw e.at_instruction(report.steps[i].instruction);
    }
    if (options.profile) queue.mark();
  }
}

void executable::state::run_on_device(workspace::state& w, std::span<const argument> given_inputs,
                                      std::span<argument> given_outputs, const run_options& options) const {
  std::unique_ptr<device_queue> users;
  if (options.stream) users = where->make_queue(options.stream);
  device_queue& queue = users ? *users : *w.queue;
  queue.enter();
  place_edges(w, given_inputs, given_outputs);
  for (std::size_t k = 0; k < w.tensors.size(); ++k) {
    const detail::operand& o = plan.operands[k];
    w.tensors[k].data = w.bases[o.storage] + w.sizes[o.offset] * static_cast<std::int64_t>(size_of(o.type));
  }
  upload_inputs(w, queue, given_inputs, given_outputs);
  if (reports_faults) queue.fill(w.faults.data(), 0, sizeof(std::int32_t));

  // the second run in a row with the same memory is recorded, those behind it replay the recording
  const bool plain = recordable && !options.profile && !options.observe && !options.cancel;
  std::vector<std::byte*>& now = w.current;
  now.clear();
  for (std::size_t s = 0; s < plan.storages.size(); ++s)
    if (plan.storages[s].kind == detail::place_kind::input || plan.storages[s].kind == detail::place_kind::output)
      now.push_back(w.bases[s]);
  if (plain && now == w.last && w.recorded != now && w.queue->begin_recording()) {
    try {
      run_steps(w, *w.queue, options);
    } catch (...) {
      w.queue->end_recording();
      throw;
    }
    w.recording = w.queue->end_recording();
    w.recorded = now;
  }
  if (plain && w.recording && w.recorded == now)
    queue.replay(*w.recording);
  else
    run_steps(w, queue, options);
  w.last = now;

  download_outputs(w, queue, given_outputs);
  if (options.stream) return;
  std::int32_t found = 0;
  if (reports_faults) queue.copy(&found, w.faults.data(), sizeof found);
  queue.wait();
  if (options.profile) {
    const std::vector<double> seconds = queue.seconds_between_marks();
    for (std::size_t i = 0; i < seconds.size(); ++i) options.profile(i, seconds[i]);
  }
  if (found != 0) {
    std::string text = "data that a step can't compute";
    for (const detail::step& st : plan.steps)
      if (st.run->reports_faults()) {
        text = st.run->fault_text();
        break;
      }
    raise(errc::invalid_argument, text);
  }
}

}  // namespace kiln
