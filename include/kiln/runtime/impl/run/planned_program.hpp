#pragma once
#include "kiln/runtime/impl/run/compiled_program.hpp"

namespace kiln::detail {

/// A program with one plan: what runs on the host and on a device have in common.
class planned_program : public runner {
 public:
  void bind(run_memory& w, std::span<const shape> inputs) const final;
  std::vector<shape> output_shapes(std::span<const shape> inputs) const final;
  const plan* whole_plan() const final { return &plan_; }

 protected:
  /// All but the plan belongs to the program that this runs, which outlives it; `where`: the device, if it is here.
  planned_program(plan p, const compiled_program& of, std::shared_ptr<const device> where);

  /// Binds, makes the outputs that the caller leaves to the run, and checks all arguments.
  void begin_run(run_memory& w, std::span<const argument> inputs, std::span<argument> outputs) const;
  /// Evaluates sizes where none depends on a symbol: they are known before any run. False where some do.
  bool bind_known_sizes(run_memory& w, const program& optimized) const;
  /// Which steps run side by side, and what scratch memory each step has; with `spare`, an eighth more than it takes
  /// where its operands differ from those before.
  void choose_groups(run_memory& w, bool spare = false) const;
  /// Gives the constants their memory, and writes those whose numbers depend on sizes; the arena has its memory.
  virtual void bind_constants(run_memory& w) const = 0;
  /// Makes kernels ready for the sizes in `w`.
  virtual void prepare_kernels(const run_memory&) const {}

  /// Bytes of a row-major copy of an input that the caller passes with strides; 0 where it needs none.
  std::size_t copied_bytes(std::size_t input, const argument& a) const;
  const growing_output* grows(std::size_t output) const;
  const growing_output* grown_in(std::size_t input) const;
  std::int64_t capacity(const growing_output& g, const shape& given) const;
  std::span<const tensor> inputs_of(const run_memory& w, const step& s) const {
    return {w.tensors.data() + s.first_operand, s.inputs};
  }
  std::span<const tensor> outputs_of(const run_memory& w, const step& s) const {
    return {w.tensors.data() + s.first_operand + s.inputs, s.outputs};
  }

  plan plan_;
  const signature& ports_;
  const std::vector<step_info>& infos_;
  thread_pool& pool_;
  const std::shared_ptr<const device> where_;

 private:
  template <class ShapeAt> void bind_sizes(run_memory& w, std::size_t count, ShapeAt given) const;
  template <class ShapeAt> void evaluate_sizes(run_memory& w, ShapeAt given) const;
  void take_sizes(run_memory& w) const;  ///< makes what depends on the evaluated sizes alone
  void place(run_memory& w, bool again) const;
  void bind_arena(run_memory& w) const;
  std::size_t scratch_of(const run_memory& w, const step& s) const;
  bool has_changed(const run_memory& w, const step& s) const;  ///< whether a tensor of the step was made again
  bool fits_scratch(const run_memory& w) const;
  shape output_shape(const run_memory& w, std::size_t k) const;
  argument make_output(const run_memory& w, std::size_t k, std::span<const argument> inputs) const;
  void check_outputs(const run_memory& w, std::span<const argument> inputs, std::span<const argument> outputs) const;
  void check_growing(const run_memory& w, const growing_output& g, const argument& input, const argument& output) const;
  void check_overlap(std::span<const argument> inputs, std::span<const argument> outputs) const;

  const std::uint64_t id_;  // among all programs: an address may come back
};

/// Chooses offsets of the arena's buffers and of scratch memory by liveness, for the sizes in `w` and that many
/// threads. With `spare`, buffers whose size differs from that in `w.before` get an eighth more.
void place_arena(const plan& p, run_memory& w, unsigned threads, bool spare);
/// Whether the sizes in `w` fit the placement made for others, and leave not more than half of it unused.
bool fits_placement(const plan& p, const run_memory& w);

/// A program whose kernels work in the host's memory.
std::unique_ptr<const runner> make_host_program(plan p, compiled_program& of);

/// A program whose kernels work in the memory of the target's device. Of `held`, constants of more bytes than graphs
/// keep are then those in that memory.
std::unique_ptr<const runner> make_device_program(plan p, compiled_program& of, const target& t, held_constants* held);

}  // namespace kiln::detail
