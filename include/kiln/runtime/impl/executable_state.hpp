#pragma once
#include <new>

#include "kiln/runtime/device.hpp"
#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/impl/plan.hpp"
#include "kiln/runtime/impl/stages.hpp"

namespace kiln {

namespace detail {
inline constexpr std::size_t alignment = 64;
/// An output that the caller leaves to the run.
inline bool is_unset(const argument& a) { return !a && a.get_shape() == shape(); }
inline std::size_t aligned(std::size_t n) { return (n + alignment - 1) / alignment * alignment; }
}  // namespace detail

struct executable::state {
  program optimised;
  detail::plan plan;
  std::optional<detail::staging> stages;  // in place of the plan, where a run decides sizes
  compile_report report;
  std::vector<port> inputs, outputs;
  std::shared_ptr<thread_pool> pool;
  // dims of the inputs that are bare symbols
  struct symbol_source {
    std::size_t input = 0, dim = 0;
    dimension symbol;
  };
  std::vector<symbol_source> symbols;
  bool flushes_denormals = false;
  std::size_t most_cached = 0;  // bytes of a step's results from which stores past the caches gain
  std::uint64_t id = 0;         // of this executable among all: an address may come back
  // of a target with a device
  bool for_device = false, reports_faults = false, recordable = false;
  std::shared_ptr<const device> where;  // null: it is not here
  buffer device_constants;
  std::vector<std::size_t> constant_offsets;  // by storage
  std::unique_ptr<kernel> copy;

  template <class ShapeAt>
  void bind_sizes(workspace::state& w, std::size_t count, ShapeAt given) const;
  template <class ShapeAt>
  void evaluate_sizes(workspace::state& w, std::size_t count, ShapeAt given) const;
  void check_rules(const workspace::state& w) const;
  void check_extents(const workspace::state& w) const;
  void make_tensors(workspace::state& w) const;
  void prepare_kernels(const workspace::state& w) const;
  void prepare_constant_sizes();
  void check_data(std::span<const argument> given) const;
  void upload_constants();
  void bind_device(workspace::state& w) const;
  void choose_groups(workspace::state& w) const;
  void place_arena(workspace::state& w) const;
  void run_steps(workspace::state& w, const run_options& options) const;
  void run_step(const workspace::state& w, std::uint32_t i, std::span<std::byte> scratch,
                const run_options& options) const;
  void run_group(workspace::state& w, const detail::branch_choice::group& g, const run_options& options) const;
  void run_on_device(workspace::state& w, std::span<const argument> inputs, std::span<argument> outputs,
                     const run_options& options) const;
  void place_edges(workspace::state& w, std::span<const argument> inputs, std::span<argument> outputs) const;
  void upload_inputs(workspace::state& w, device_queue& queue, std::span<const argument> inputs,
                     std::span<argument> outputs) const;
  void download_outputs(const workspace::state& w, device_queue& queue, std::span<argument> outputs) const;
  void run_steps(workspace::state& w, device_queue& queue, const run_options& options) const;
  std::size_t edge_bytes(std::size_t storage, std::span<const argument> inputs, std::span<argument> outputs) const;
  void check_type(const port& p, const shape& given, const char* what) const;
  void check_inputs(std::span<const shape> given) const;
  shape output_shape(const workspace::state& w, std::size_t k) const;
  std::byte* stage(workspace::state& w, std::span<const argument> inputs) const;
  std::size_t staged_bytes(std::size_t input, const argument& a) const;
  const detail::growing_output* grows(std::size_t output) const;
  const detail::growing_output* grown_in(std::size_t input) const;
  std::int64_t capacity(const detail::growing_output& g, const shape& given) const;
  argument allocate_output(std::size_t k, const shape& s) const;
  argument make_output(const workspace::state& w, std::uint32_t k, std::span<const argument> inputs) const;
  void check_outputs(const workspace::state& w, std::span<const argument> inputs,
                     std::span<const argument> outputs) const;
  void check_overlap(std::span<const argument> inputs, std::span<const argument> outputs) const;
  void run(workspace& w, std::span<const argument> given, std::span<argument> made, const run_options& options,
           const std::vector<std::pair<dimension, std::int64_t>>& outer) const;
  void run_stages(workspace::state& w, std::span<const argument> inputs, std::span<argument> outputs,
                  const run_options& options) const;
  void run_planned(workspace::state& w, std::span<const argument> inputs, std::span<argument> outputs,
                   const run_options& options) const;
};

struct workspace::state {
  std::uint64_t owner = 0;
  std::vector<std::int64_t> bound;  // extents of the inputs, flattened: what the rest was computed for
  bindings values;
  std::vector<std::pair<dimension, std::int64_t>> outer;  // symbols known from outside
  std::vector<workspace> inner;                           // of stages and bodies
  std::vector<std::int64_t> sizes;
  std::vector<tensor> tensors;
  std::vector<std::size_t> offsets;  // of arena storages
  std::vector<std::byte*> bases;
  detail::branch_choice beside;
  std::vector<std::uint32_t> live;  // while offsets are chosen
  std::vector<std::pair<std::size_t, std::size_t>> taken;
  buffer arena, staging;             // staging: row-major copies of inputs that the caller passed with strides
  std::vector<std::size_t> scratch;  // of each step by itself
  std::size_t scratch_offset = 0, scratch_bytes = 0, needed = 0, growths = 0;
  // of a device: its queue, room there for what the caller has in the host's memory, and the last run's work
  std::shared_ptr<const device> where;
  std::unique_ptr<device_queue> queue;
  buffer edges, faults;
  std::vector<std::byte*> recorded, last, current;  // bases of the inputs and outputs: the recording's, the last run's
  std::unique_ptr<device_recording> recording;

  // Enlarges a buffer; the old one goes before the new one comes.
  void grow(buffer& b, std::size_t bytes) {
    if (b.size() >= bytes) return;
    owner = 0;
    recording.reset();
    recorded.clear();
    b = buffer();
    try {
      b = where ? where->allocate(bytes) : buffer::allocate(bytes);
    } catch (const std::bad_alloc&) {
      raise(errc::limit, "memory for a run's values: " + std::to_string(bytes) + " bytes are not to be had");
    }
    ++growths;
  }
};

}  // namespace kiln
