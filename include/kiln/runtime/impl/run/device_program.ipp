#include <algorithm>
#include <cstring>
#include <map>

#include "kiln/core/mapped_file.hpp"
#include "kiln/runtime/impl/compile/free_constants.hpp"
#include "kiln/runtime/impl/run/device_mirror.hpp"
#include "kiln/runtime/impl/run/planned_program.hpp"
#include "kiln/runtime/run_options.hpp"
#include "kiln/runtime/thread_pool.hpp"

// Runs of programs for a target with a device: what the caller has in the host's memory is copied at the edges, steps
// are given to a queue, and the same run again is replayed as a whole.
namespace kiln::detail {
namespace {

std::size_t bytes_of(const argument& a) { return static_cast<std::size_t>(a.elements()) * size_of(a.get_shape().type); }

class device_program final : public planned_program {
 public:
  device_program(plan p, compiled_program& of, const target& t, held_constants* held)
      : planned_program(std::move(p), of, t.get_device()), copy_(t.make_copy(&of.derived)) {
    for (const step& s : plan_.steps) {
      recordable_ = recordable_ && s.run->on_device();
      reports_faults_ = reports_faults_ || s.run->reports_faults();
    }
    run_memory w;
    if (bind_known_sizes(w, of.optimized)) prepare_kernels(w);
    if (where_) upload_constants(held);
  }

  void run(run_memory& w, std::span<const argument> inputs, std::span<argument> outputs,
           const run_options& options) const override {
    if (!where_)
      raise(errc::unsupported, "an executable runs where its device is: this was compiled for an absent one");
    begin_run(w, inputs, outputs);
    std::unique_ptr<device_queue> users;
    if (options.stream) users = where_->make_queue(options.stream);
    device_queue& queue = users ? *users : *w.on_device.queue;
    queue.enter();
    const edge_layout edges = place_edges(w, inputs, outputs, options.stream == nullptr);
    for (std::size_t k = 0; k < w.tensors.size(); ++k) {
      const operand& o = plan_.operands[k];
      w.tensors[k].data = w.bases[o.buffer] + w.sizes[o.offset] * static_cast<std::int64_t>(size_of(o.type));
    }
    if (edges.staged) {
      stage_inputs(w, edges, inputs);
    } else {
      upload_inputs(w, queue, inputs, outputs);
      if (reports_faults_) queue.fill(w.on_device.faults, 0, sizeof(std::int32_t));
    }
    replay_or_run_steps(w, queue, edges, options);
    if (!edges.staged) download_outputs(w, queue, outputs);
    if (options.stream) return;
    std::int32_t found = 0;
    if (reports_faults_ && !edges.staged) queue.copy(&found, w.on_device.faults, sizeof found);
    queue.wait();
    if (edges.staged) {
      if (reports_faults_) std::memcpy(&found, w.on_device.staged.data() + edges.inputs, sizeof found);
      unstage_outputs(w, outputs);
    }
    if (options.profile) {
      const std::vector<double> seconds = queue.seconds_between_marks();
      for (std::size_t i = 0; i < seconds.size(); ++i) options.profile(i, seconds[i]);
    }
    if (found == 0) return;
    for (const step& s : plan_.steps)
      if (s.run->reports_faults()) raise(errc::invalid_argument, s.run->fault_text());
  }

 private:
  void prepare_kernels(const run_memory& w) const override {
    pool_.parallel_for(static_cast<std::int64_t>(plan_.steps.size()), [&](std::int64_t i, unsigned) {
      const step& s = plan_.steps[static_cast<std::size_t>(i)];
      try {
        s.run->prepare(inputs_of(w, s), outputs_of(w, s));
      } catch (error& e) {
        throw e.at_instruction(infos_[static_cast<std::size_t>(i)].instruction);
      }
    });
  }

  // One piece of the device's memory holds all constants for good; the host's copies go.
  void upload_constants(held_constants* held) {
    constant_offsets_.assign(plan_.buffers.size(), 0);
    std::size_t bytes = 0;
    for (std::size_t s = 0; s < plan_.buffers.size(); ++s)
      if (plan_.buffers[s].kind == lower::memory::constant) {
        constant_offsets_[s] = bytes;
        bytes += aligned(static_cast<std::size_t>(plan_.buffers[s].constant.get_shape().bytes().value()));
      }
    if (bytes == 0) return;
    const std::unique_ptr<device_queue> queue = where_->make_queue();
    queue->enter();
    constants_ = where_->allocate(bytes);
    for (std::size_t s = 0; s < plan_.buffers.size(); ++s) {
      planned_buffer& b = plan_.buffers[s];
      if (b.kind != lower::memory::constant) continue;
      if (const auto n = static_cast<std::size_t>(b.constant.get_shape().bytes().value()))
        queue->copy(constants_.data() + constant_offsets_[s], b.constant.bytes(), n);
    }
    queue->wait();
    std::map<const void*, std::size_t> uploaded;
    for (std::size_t s = 0; s < plan_.buffers.size(); ++s)
      if (plan_.buffers[s].constant.data().size() > most_kept_bytes)
        uploaded[plan_.buffers[s].constant.bytes()] = constant_offsets_[s];
    if (held)
      for (auto& [address, constant] : *held)
        if (const auto at = uploaded.find(constant.bytes()); at != uploaded.end())
          constant = literal(constant.get_shape(), buffer_part(constants_, at->second, constant.data().size()));
    for (planned_buffer& b : plan_.buffers) b.constant = literal();
  }

  void bind_constants(run_memory& w) const override {
    if (!where_) return;
    device_queue& queue = *(w.on_device.queue ? w.on_device.queue : w.on_device.queue = where_->make_queue());
    queue.enter();
    std::vector<std::vector<std::byte>> encoded;
    for (std::size_t s = 0; s < plan_.buffers.size(); ++s) {
      const planned_buffer& b = plan_.buffers[s];
      if (b.kind == lower::memory::constant)
        w.bases[s] = const_cast<std::byte*>(constants_.data()) + constant_offsets_[s];
      if (b.values.empty()) continue;
      auto& bytes = encoded.emplace_back(b.values.size() * size_of(b.type));
      for (std::size_t n = 0; n < b.values.size(); ++n)
        encode(b.type, &w.sizes[b.values[n]], bytes.data() + n * size_of(b.type), 1);
      queue.copy(w.bases[s], bytes.data(), bytes.size());
    }
    queue.wait();
  }

  // What the caller has on the device serves as it is where addresses are as aligned as those that kernels are planned
  // and given scratch memory for.
  bool serves(const std::byte* data) const {
    constexpr std::uintptr_t kernels_expect = 16;
    return where_->owns(data) && reinterpret_cast<std::uintptr_t>(data) % kernels_expect == 0;
  }

  // Room on the device for a buffer of the caller's: none where the caller's serves.
  std::size_t edge_bytes(std::size_t s, std::span<const argument> inputs, std::span<argument> outputs) const {
    const planned_buffer& b = plan_.buffers[s];
    if (b.kind == lower::memory::input) {
      const argument& a = inputs[b.index];
      return serves(a.data()) && copied_bytes(b.index, a) == 0 ? 0 : aligned(bytes_of(a));
    }
    if (b.kind != lower::memory::output || serves(outputs[b.index].data())) return 0;
    const growing_output* g = grows(b.index);
    if (!g) return aligned(bytes_of(outputs[b.index]));
    const shape& from = inputs[g->input].get_shape();
    std::size_t n = size_of(from.type) * static_cast<std::size_t>(capacity(*g, from));
    for (std::size_t d = 0; d < from.rank(); ++d)
      if (d != g->axis) n *= static_cast<std::size_t>(from.lens[d].raw());
    return aligned(n);
  }

  // What the caller has in the host's memory, on the device: inputs, the number of `launch::faults`, outputs.
  struct edge_layout {
    std::size_t inputs = 0, outputs = 0, all = 0;  // bytes: of inputs, before outputs, and in all
    bool staged = false;                           // passes through page-locked memory, in one copy each way
  };
  edge_layout place_edges(run_memory& w, std::span<const argument> inputs, std::span<argument> outputs,
                          bool waits) const {
    constexpr std::size_t most_staged = std::size_t{16} << 20;
    edge_layout out;
    bool plain = waits && !w.on_device.last.empty();  // page-locked memory is dear, and single runs gain little
    std::vector<std::size_t> room(plan_.buffers.size());
    for (std::size_t s = 0; s < plan_.buffers.size(); ++s) {
      const planned_buffer& b = plan_.buffers[s];
      out.all += room[s] = edge_bytes(s, inputs, outputs);
      if (b.kind == lower::memory::input) {
        out.inputs += room[s];
        plain =
            plain && copied_bytes(b.index, inputs[b.index]) == 0 && !(room[s] && where_->owns(inputs[b.index].data()));
      } else if (b.kind == lower::memory::output) {
        plain = plain && !grows(b.index) && !(room[s] && where_->owns(outputs[b.index].data()));
      }
    }
    const std::size_t fault = reports_faults_ ? aligned(sizeof(std::int32_t)) : 0;
    out.all += fault, out.outputs = out.inputs + fault;
    out.staged = plain && out.all != 0 && out.all <= most_staged;
    w.grow(w.on_device.edges, out.all);
    if (out.staged && w.on_device.staged.size() < out.all) {
      w.on_device.forget_runs();
      w.on_device.staged = buffer();
      w.on_device.staged = where_->allocate_on_host(out.all);
    }
    std::byte *at = w.on_device.edges.data(), *output_at = at + out.outputs;
    w.on_device.faults = at + out.inputs;
    for (std::size_t s = 0; s < plan_.buffers.size(); ++s) {
      const planned_buffer& b = plan_.buffers[s];
      if (b.kind == lower::memory::input) {
        w.bases[s] = room[s] ? at : const_cast<std::byte*>(inputs[b.index].data());  // kernels only read it
        at += room[s];
      } else if (b.kind == lower::memory::output) {
        w.bases[s] = room[s] ? output_at : outputs[b.index].data();
        output_at += room[s];
      }
    }
    return out;
  }

  // Visits buffers of the caller's in the host's memory: visit(number of the argument, its place in `staged`).
  template <class Visit> void each_staged(run_memory& w, lower::memory kind, Visit visit) const {
    device_memory& d = w.on_device;
    for (std::size_t s = 0; s < plan_.buffers.size(); ++s) {
      const auto offset = static_cast<std::size_t>(w.bases[s] - d.edges.data());
      if (plan_.buffers[s].kind == kind && w.bases[s] >= d.edges.data() && offset < d.edges.size())
        visit(plan_.buffers[s].index, d.staged.data() + offset);
    }
  }
  void stage_inputs(run_memory& w, const edge_layout& edges, std::span<const argument> inputs) const {
    each_staged(w, lower::memory::input, [&](std::size_t k, std::byte* to) {
      if (const std::size_t n = bytes_of(inputs[k])) std::memcpy(to, inputs[k].data(), n);
    });
    if (reports_faults_) std::memset(w.on_device.staged.data() + edges.inputs, 0, sizeof(std::int32_t));
  }
  void unstage_outputs(run_memory& w, std::span<argument> outputs) const {
    each_staged(w, lower::memory::output, [&](std::size_t k, const std::byte* from) {
      if (const std::size_t n = bytes_of(outputs[k])) std::memcpy(outputs[k].data(), from, n);
    });
  }

  void upload_inputs(run_memory& w, device_queue& queue, std::span<const argument> inputs,
                     std::span<argument> outputs) const {
    for (std::size_t s = 0; s < plan_.buffers.size(); ++s) {
      const planned_buffer& b = plan_.buffers[s];
      if (b.kind == lower::memory::output) {
        const growing_output* g = grows(b.index);
        if (g && w.bases[s] != outputs[b.index].data())
          queue.copy(w.bases[s], inputs[g->input].data(), edge_bytes(s, inputs, outputs));
      }
      if (b.kind != lower::memory::input) continue;
      const argument& a = inputs[b.index];
      if (a.data() == w.bases[s] || bytes_of(a) == 0) continue;
      if (copied_bytes(b.index, a) == 0) {
        queue.copy(w.bases[s], a.data(), bytes_of(a));
        continue;
      }
      if (where_->owns(a.data())) {
        const tensor from = tensor_of(a), to{w.bases[s], from.type, from.lens, row_major(from.lens)};
        launch l{{&from, 1}, {&to, 1}, {}, &pool_};
        l.queue = &queue;
        copy_->run(l);
      } else {
        const argument dense = a.contiguous();
        queue.copy(w.bases[s], dense.data(), bytes_of(a));
        queue.wait();
      }
    }
  }

  void download_outputs(const run_memory& w, device_queue& queue, std::span<argument> given) const {
    for (std::size_t s = 0; s < plan_.buffers.size(); ++s) {
      const planned_buffer& b = plan_.buffers[s];
      if (b.kind != lower::memory::output || w.bases[s] == given[b.index].data()) continue;
      argument& a = given[b.index];
      std::size_t n = bytes_of(a);
      if (grows(b.index)) {  // its gaps hold what was uploaded
        const shape& t = a.get_shape();
        const dims strides = t.element_strides();
        n = size_of(t.type);
        for (std::size_t d = 0; d < t.rank(); ++d)
          n += size_of(t.type) * static_cast<std::size_t>(strides[d].raw() * (t.lens[d].raw() - 1));
      }
      if (n != 0 && a.elements() != 0) queue.copy(a.data(), w.bases[s], n);
    }
  }

  // The second run in a row with the same memory is recorded, those after it replay the recording.
  void replay_or_run_steps(run_memory& w, device_queue& queue, const edge_layout& edges,
                           const run_options& options) const {
    device_memory& d = w.on_device;
    const bool plain = recordable_ && !options.profile && !options.observe && !options.cancel;
    d.current.clear();
    for (std::size_t s = 0; s < plan_.buffers.size(); ++s)
      if (plan_.buffers[s].kind == lower::memory::input || plan_.buffers[s].kind == lower::memory::output)
        d.current.push_back(w.bases[s]);
    d.current.push_back(edges.staged ? d.staged.data() : nullptr);
    const auto run_between_copies = [&](device_queue& on) {
      const std::size_t back = edges.inputs;  // the number of faults goes both ways
      if (edges.staged && edges.outputs != 0) on.copy(d.edges.data(), d.staged.data(), edges.outputs);
      run_steps(w, on, options);
      if (edges.staged && edges.all != back) on.copy(d.staged.data() + back, d.edges.data() + back, edges.all - back);
    };
    if (plain && d.current == d.last && d.recorded != d.current && d.queue->begin_recording()) {
      try {
        run_between_copies(*d.queue);
      } catch (...) {
        d.queue->end_recording();
        throw;
      }
      d.recording = d.queue->end_recording();
      d.recorded = d.current;
    }
    if (plain && d.recording && d.recorded == d.current)
      queue.replay(*d.recording);
    else
      run_between_copies(queue);
    d.last = d.current;
  }

  void run_steps(run_memory& w, device_queue& queue, const run_options& options) const {
    if (options.profile) queue.mark();
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      if (options.cancel && options.cancel->load(std::memory_order_relaxed))
        raise(errc::canceled, "the run was stopped before step " + std::to_string(i));
      const step& st = plan_.steps[i];
      const launch l{inputs_of(w, st),
                     outputs_of(w, st),
                     {w.arena.data() + w.scratch_offset, w.scratch_bytes},
                     &pool_,
                     &w.values,
                     false,
                     &queue,
                     reinterpret_cast<std::int32_t*>(w.on_device.faults)};
      try {
        st.run->run(l);
        if (options.observe) {
          const mirror seen(queue, l.out);
          queue.wait();
          options.observe(i, seen.tensors());
        }
      } catch (error& e) {
        throw e.at_instruction(infos_[i].instruction);
      }
      if (options.profile) queue.mark();
    }
  }

  const std::unique_ptr<kernel> copy_;
  bool reports_faults_ = false, recordable_ = true;
  buffer constants_;
  std::vector<std::size_t> constant_offsets_;  // by buffer
};

}  // namespace

std::unique_ptr<const runner> make_device_program(plan p, compiled_program& of, const target& t, held_constants* held) {
  return std::make_unique<device_program>(std::move(p), of, t, held);
}

}  // namespace kiln::detail
