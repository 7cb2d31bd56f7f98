#pragma once
#include <new>

#include "kiln/runtime/device.hpp"
#include "kiln/runtime/impl/plan/plan.hpp"

namespace kiln::detail {

inline constexpr std::size_t alignment = 64;
inline std::size_t aligned(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }

/// An output that the caller leaves to the run.
inline bool is_unset(const argument& a) { return !a && a.get_shape() == shape(); }

/// Values of symbols that a program's caller knows: of the program that it is a body or segment of.
using symbol_values = std::vector<std::pair<dimension, std::int64_t>>;

/// What runs on a device keep there from one to the next.
struct device_memory {
  std::shared_ptr<const device> where;  // null: runs on the host
  std::unique_ptr<device_queue> queue;
  buffer edges;                 // inputs and outputs that the caller has in the host's memory
  buffer staged;                // page-locked memory of the host that these pass through where they are small
  std::byte* faults = nullptr;  // the number of `launch::faults`, among the edges
  buffer loop;                  // of a loop's body: what iterations are told, say, carry and collect
  // A recording and the bases of inputs and outputs that it works on; those of the last run, and of this one.
  std::unique_ptr<device_recording> recording;
  std::vector<std::byte*> recorded, last, current;

  void forget_runs() {
    recording.reset();
    recorded.clear();
    last.clear();
  }
};

/// The state of a `workspace`: a planned program bound to sizes and memory.
struct run_memory {
  // What the rest was computed for: a program (0: none) and the extents of its inputs, one after the other.
  std::uint64_t owner = 0;
  std::vector<std::int64_t> bound;
  symbol_values outer;
  bool outer_changed = false;  // since then
  // sizes
  bindings values;
  std::vector<std::int64_t> sizes;    // by slot of the plan
  std::vector<tensor> tensors;        // by operand of the plan
  std::vector<std::int64_t> before;   // the sizes that the tensors were made of, where they are made again
  std::vector<std::uint8_t> changed;  // by operand of the plan: whether its tensor was made again
  std::vector<std::uint8_t> alone;    // by step: whether one thread runs it
  std::vector<std::size_t> scratch;   // bytes that each step has by itself
  branch_choice beside;
  // placement
  std::vector<std::size_t> offsets;  // of the arena's buffers
  std::vector<std::size_t> room;     // bytes that the placement gives the arena's buffers
  std::vector<std::byte*> bases;     // of all buffers
  std::size_t scratch_offset = 0, scratch_bytes = 0, needed = 0;
  std::vector<std::uint32_t> arena_order;  // the arena's buffers while offsets are chosen, then by offset
  // memory
  buffer arena, dense_inputs;  // the latter: row-major copies of inputs that the caller passed with strides
  std::size_t growths = 0;
  device_memory on_device;
  std::vector<run_memory> inner;  // of segments and bodies

  std::size_t bytes() const {
    std::size_t n = arena.size() + dense_inputs.size() + on_device.edges.size() + on_device.loop.size();
    for (const run_memory& m : inner) n += m.bytes();
    return n;
  }
  /// How often memory was enlarged, that of segments and bodies too.
  std::size_t all_growths() const {
    std::size_t n = growths;
    for (const run_memory& m : inner) n += m.all_growths();
    return n;
  }

  // Memory of another device, or of the host, is of no use for runs on this one; nor is what was bound to it.
  void serve(const std::shared_ptr<const device>& where) {
    if (on_device.where == where) return;
    owner = 0;
    arena = dense_inputs = buffer();
    on_device = {};
    on_device.where = where;
  }

  // Enlarges a buffer; the old one goes before the new one comes.
  void grow(buffer& b, std::size_t bytes) {
    if (b.size() >= bytes) return;
    on_device.recording.reset();
    on_device.recorded.clear();
    b = buffer();
    try {
      b = on_device.where ? on_device.where->allocate(bytes) : buffer::allocate(bytes);
    } catch (const std::bad_alloc&) {
      raise(errc::limit, "memory for a run's values: " + std::to_string(bytes) + " bytes are not to be had");
    }
    ++growths;
  }
};

}  // namespace kiln::detail
