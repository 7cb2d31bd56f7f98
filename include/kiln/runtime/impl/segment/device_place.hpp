#pragma once
#include "kiln/core/object.hpp"
#include "kiln/runtime/counting_kernel.hpp"
#include "kiln/runtime/fallback_kernel.hpp"
#include "kiln/runtime/impl/run/device_mirror.hpp"
#include "kiln/runtime/impl/segment/segments.hpp"

namespace kiln::detail {

/// Where values of a run of segments lie: in the host's memory, or, with a device, also in its. Moves them, in a queue
/// of its own.
class device_place {
 public:
  /// `w` keeps the queue; `copies` copies between layouts on the device. A null device: all memory is the host's.
  device_place(const std::shared_ptr<const device>& where, const kernel* copies, run_memory& w, thread_pool& pool)
      : where_(where), copies_(copies), pool_(pool) {
    if (!where_) return;
    w.serve(where_);
    if (!w.on_device.queue) w.on_device.queue = where_->make_queue();
    queue_ = w.on_device.queue.get();
    queue_->enter();
  }
  explicit operator bool() const { return where_ != nullptr; }

  bool holds(const argument& a) const {
    return where_ && !is_unset(a) && !is_object(a.get_shape().type) && a.elements() != 0 && where_->owns(a.data());
  }
  /// Whether kernels read and write an argument where it lies: row-major on the device, as aligned as they expect.
  bool serves(const argument& a) const {
    return holds(a) && a.get_shape().standard() && reinterpret_cast<std::uintptr_t>(a.data()) % 16 == 0;
  }
  /// The argument itself, or a copy of what the device holds.
  argument on_host(const argument& a) const {
    if (!holds(a)) return a;
    const tensor there = tensor_of(a);
    const mirror seen(*queue_, {&there, 1});
    queue_->wait();
    argument to(shape(a.get_shape().type, a.get_shape().lens));
    copy_tensor(seen.tensors()[0], tensor_of(to), nullptr);
    return to;
  }
  /// Copies elements to row-major memory of the same extents; either may be the device's.
  void copy(const argument& from, argument& to) const {
    const bool there = holds(from), meant = holds(to);
    if (!there && !meant) return copy_tensor(tensor_of(from), tensor_of(to), &pool_);
    if (there && !from.get_shape().standard()) {
      if (!meant) return copy_tensor(tensor_of(on_host(from)), tensor_of(to), &pool_);
      const tensor in = tensor_of(from), out = tensor_of(to);
      launch l{{&in, 1}, {&out, 1}, {}, &pool_};
      l.queue = queue_;
      copies_->run(l);
    } else {
      const argument dense = there ? from : from.contiguous();
      queue_->copy(to.data(), dense.data(), bytes_of(to.get_shape()));
    }
    queue_->wait();
  }
  /// Makes the memory of `w` the device's.
  void keep_there(run_memory& w) const { w.serve(where_); }
  /// Gives the queue a copy within the device's memory.
  void copy_bytes(void* to, const void* from, std::size_t bytes) const { queue_->copy(to, from, bytes); }
  device_queue& queue() const { return *queue_; }
  /// The queue's own handle, for work that need not be waited for before the next.
  void* stream() const { return queue_->stream(); }
  void wait() const { queue_->wait(); }
  std::unique_ptr<device_event> record() const { return queue_->record(); }
  /// Runs a step whose result's size its kernel finds on the device: in `wanted` where that has the size and is the
  /// device's, else in memory of `w`, which the next run has, too.
  argument run_counting(const host_step& step, std::span<const argument> in, run_memory& w,
                        const argument& wanted) const {
    w.serve(where_);
    w.owner = 0;  // a planned program that had this memory binds it anew: what follows enlarges and overwrites it
    std::vector<argument> given(in.begin(), in.end());
    const auto moves = [&](const argument& a) { return !serves(a); };
    std::size_t bytes = 0;
    for (const argument& a : given)
      if (moves(a)) bytes += aligned(bytes_of(a.get_shape()));
    w.grow(w.dense_inputs, std::max(bytes, alignment));
    std::byte* at = w.dense_inputs.data();
    std::vector<tensor> operands;
    for (argument& a : given) {
      if (moves(a)) {
        argument there({a.get_shape().type, a.get_shape().lens}, at);
        at += aligned(bytes_of(a.get_shape()));
        if (a.elements() != 0) copy(a, there);
        a = there;
      }
      operands.push_back(tensor_of(a));
    }
    const std::size_t scratch = step.on_device->scratch_bytes(operands, {}, 1);
    w.grow(w.arena, std::max(scratch, alignment));
    launch l{operands, {}, {w.arena.data(), scratch}, &pool_};
    l.queue = queue_;
    step.counts->count(l);
    std::int64_t n = 0;
    queue_->copy(&n, w.arena.data(), sizeof n);
    queue_->wait();
    const shape s = step.counts->made(operands, n);
    const bool fits = serves(wanted) && wanted.get_shape().type == s.type && wanted.get_shape().lens == s.lens;
    argument out = wanted;
    if (!fits) {
      w.grow(w.on_device.edges, std::max(bytes_of(s), alignment));
      out = argument(s, w.on_device.edges.data());
    }
    const tensor result = tensor_of(out);
    l.out = {&result, 1};
    if (out.elements() != 0) step.on_device->run(l);
    queue_->wait();
    return out;
  }

 private:
  static std::size_t bytes_of(const shape& s) { return static_cast<std::size_t>(s.bytes().value()); }

  const std::shared_ptr<const device>& where_;
  const kernel* const copies_;
  thread_pool& pool_;
  device_queue* queue_ = nullptr;
};

}  // namespace kiln::detail
