#pragma once
#include <functional>
#include <mutex>

#include "kiln/runtime/impl/run/ports.hpp"
#include "kiln/runtime/impl/run/run_memory.hpp"

namespace kiln::detail {

// The way of a run:
//
//   executable::run -> compiled_program::run -> host_program::run, device_program::run or segmented_program::run
//                                            -> kernel::run of each step
//
// `planned_program`, the base of the first two, binds the workspace to the sizes of the inputs on the way, where they
// are others than in the run before; a segmented program runs the compiled programs of its segments.

/// How a compiled program runs; constant, shared by threads.
class runner {
 public:
  virtual ~runner() = default;
  virtual void run(run_memory& w, std::span<const argument> inputs, std::span<argument> outputs,
                   const run_options& options) const = 0;
  /// Sizes the memory for these inputs, as far as they tell sizes.
  virtual void bind(run_memory& w, std::span<const shape> inputs) const = 0;
  virtual std::vector<shape> output_shapes(std::span<const shape> inputs) const = 0;
  /// The plan of the whole program; null where it has segments.
  virtual const plan* whole_plan() const { return nullptr; }
};

/// What `compile` makes of a program: the state of an `executable`, or a body or segment of another program.
struct compiled_program {
  program optimized;
  compile_report report;
  signature ports;
  std::shared_ptr<thread_pool> pool;
  bool flushes_denormals = false;
  std::unique_ptr<const runner> runs;

  // ---- what a saved program keeps beside these
  std::string binary_format;                                 ///< of its target
  bool on_device = false;                                    ///< of its target, too
  std::shared_ptr<const device> where;                       ///< of its target; null where there is none here
  std::vector<std::pair<std::string, std::string>> options;  ///< as text
  derived_data derived;
  /// Constants that steps on a device read, of more bytes than the graph keeps: in its memory, or in the host's where
  /// the device is absent.
  struct device_constant {
    std::uint32_t module = 0, instruction = 0;
    buffer data;
  };
  std::vector<device_constant> device_constants;
  bool near_constants = false, allow_nhwc = true;
  std::vector<output_alias> aliases;
  /// Of a loaded program: what its first run checks, which throws at each run until it holds.
  struct first_run_check {
    std::once_flag done;
    std::function<void()> check;
  };
  std::unique_ptr<first_run_check> unchecked;

  /// `outer`: symbols whose values the caller knows.
  void run(run_memory& w, std::span<const argument> inputs, std::span<argument> outputs, const run_options& options,
           const symbol_values& outer = {}) const;
};

/// Plans a program that passes have seen, and makes its kernels.
void make_steps(compiled_program& p, const target& t, const compile_options& options, plan_choices choices);

/// The same as measurements or the tuning's cache say; takes the place of `p`.
void make_tuned_steps(std::unique_ptr<compiled_program>& p, const target& t, const compile_options& options, tuner& by);

/// Compiles a program whose weights are bound.
executable compile_bound(program p, const target& t, const compile_options& options);
/// The same through `compile_options::cache`.
executable compile_cached(program p, const target& t, const compile_options& options);

/// The pool that the options name, or one that they ask for.
std::shared_ptr<thread_pool> pool_of(const compile_options& options);

/// Compiles a part of a program that passes have seen, with what was chosen for the whole.
std::unique_ptr<const compiled_program> compile_part(program p, const target& t, std::shared_ptr<thread_pool> pool,
                                                     const plan_choices& choices,
                                                     std::vector<output_alias> aliases = {});

}  // namespace kiln::detail
