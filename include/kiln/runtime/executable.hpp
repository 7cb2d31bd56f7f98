#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kiln/pass/pipeline.hpp"
#include "kiln/runtime/kernel.hpp"

namespace kiln {

class tuner;

/// An output that is an input with more after it along one axis, as a key-value cache is, and stays in that input's
/// memory: the output is a `concat` that begins with the input. In a run both show the same memory, in which the axis
/// has room up to a capacity: `leading_part` makes such arguments.
struct output_alias {
  std::string output, input;
};

/// How a program is compiled. options.hpp names the fields that are plain values, for all who set them as text.
struct compile_options {
  /// Threads of the pool made for this executable; 0: one for each processor. Ignored when `pool` is given.
  unsigned threads = 0;
  /// Chooses kernels by timing them while the program is compiled, or as the choices in `tuning_file` say; otherwise
  /// estimates choose. Only kernels of constant sizes are timed. A program with other choices than the estimated ones
  /// is then timed against the estimated program, and the faster one is returned. Ignored when `tuning` is given; a
  /// GPU's kernels are chosen by `hip_options::tune`.
  bool tune = false;
  /// Where `tune` keeps its choices; empty: `tuning_cache::default_file()`.
  std::string tuning_file;
  /// A folder of compiled programs (saved_program.hpp): one that was compiled before from the same graph and weights,
  /// for the same target and with the same options, is loaded from there; another is compiled and kept. Any number of
  /// processes may share it. Empty: none.
  std::string cache;
  /// MiB that the folder may hold: what was used the longest ago goes first.
  unsigned cache_limit = 10240;
  /// Outputs that grow in place. Names the program does not have are a `not_found` error, outputs that are no such
  /// concatenation an `unsupported` one.
  std::vector<output_alias> aliases;
  pass_options passes;

  // What has no text: objects of the caller.

  /// A pool to share with other executables.
  std::shared_ptr<thread_pool> pool;
  /// A tuner (tuner.hpp) to share with other programs, as `tune` makes one for each.
  std::shared_ptr<tuner> tuning;
  /// Values for weight parameters, by name; every weight needs one.
  std::map<std::string, argument> weights;
  /// What the program's maker took for granted (`onnx::imported::remarks`): the report's remarks begin with it.
  std::vector<std::string> remarks;
};

/// A named input or output; dims may be symbolic.
struct port {
  std::string name;
  shape type;
};

/// One step of the plan, as reports show it.
struct step_info {
  std::string kernel;       ///< the kernel's name
  std::string instruction;  ///< the instruction it came from (source node's name where known)
  bool fallback = false;    ///< the op's reference computation
  bool copy = false;        ///< a layout copy the plan inserted
  std::int64_t index = -1;  ///< of the instruction in the optimized program's main module; -1 for a copy
  std::vector<shape> inputs, outputs;
  dimension flops;  ///< multiplications and additions of contractions; 0 elsewhere
  dimension bytes;  ///< operands read plus results written once
  std::size_t packed_bytes = 0;
  /// Of a step that runs beside others, but for runs that profile or observe: the first step of its group, and its
  /// branch in that group, whose steps follow each other. -1: it runs by itself, or only a run's sizes decide.
  std::int64_t group = -1, branch = -1;
};

/// What compilation did.
struct compile_report {
  std::string target;
  std::vector<pass_note> passes;
  std::vector<step_info> steps;
  std::vector<std::string> remarks;  ///< what is not exactly as the program says, and why more was not done
  std::size_t constant_bytes = 0;    ///< constants held as they are
  std::size_t packed_bytes = 0;      ///< constants held in a kernel's own form
  double optimize_ms = 0, plan_ms = 0;
};

class executable;
namespace detail {
struct compiled_program;
struct run_memory;
struct executable_access;
}  // namespace detail

/// The memory of one run: bound to sizes, reused as long as they fit. One thread at a time.
class workspace {
 public:
  workspace();
  workspace(workspace&&) noexcept;
  workspace& operator=(workspace&&) noexcept;
  ~workspace();
  /// Bytes of the arena; from 1 MiB on whole 2 MiB pages.
  std::size_t bytes() const;
  /// How often binding had to enlarge the arena.
  std::size_t growths() const;

 private:
  friend class executable;
  std::unique_ptr<detail::run_memory> memory_;
};

struct run_options;  // run_options.hpp: canceling, profiling, observing

/// A program compiled for a target: immutable, shared by any number of threads, each with its own workspace.
class executable {
 public:
  executable(executable&&) noexcept;
  executable& operator=(executable&&) noexcept;
  ~executable();

  std::span<const port> inputs() const;
  std::span<const port> outputs() const;
  const compile_report& report() const;
  /// The optimized program the plan was made from.
  const program& optimized() const;

  /// An empty workspace; the first run sizes it.
  workspace make_workspace() const { return workspace(); }
  /// Sizes a workspace for these input shapes, so that the run allocates nothing. Throws `error` for wrong shapes.
  void bind(workspace& w, std::span<const shape> inputs) const;
  /// Shapes of the outputs for these input shapes; an extent that only a run can tell stays symbolic.
  std::vector<shape> output_shapes(std::span<const shape> inputs) const;
  /// Fresh outputs for these input shapes; those that only a run can size are empty. An error names the output that is
  /// too large for the machine.
  std::vector<argument> make_outputs(std::span<const shape> inputs) const;
  /// Runs on the caller's buffers: inputs in order, any strides; outputs row-major with the right shapes, in memory
  /// that is neither another output's nor a row-major input's, aliases aside. An output that is given empty becomes an
  /// argument of its own, and so does every output of strings, sequences or optionals.
  void run(workspace& w, std::span<const argument> inputs, std::span<argument> outputs) const;
  /// The same with hooks (include run_options.hpp).
  void run(workspace& w, std::span<const argument> inputs, std::span<argument> outputs,
           const run_options& options) const;
  /// Runs and returns fresh outputs; those that grow in place show their inputs' memory.
  std::vector<argument> run(std::span<const argument> inputs) const;
  /// Runs with inputs by name. A missing input is an `invalid_argument` error, an unknown name `not_found`.
  std::vector<argument> run(const std::map<std::string, argument>& inputs) const;
  /// The index of a named input; `not_found` error otherwise.
  std::size_t input_index(std::string_view name) const;
  thread_pool& pool() const;

 private:
  friend struct detail::executable_access;
  explicit executable(std::unique_ptr<const detail::compiled_program> p);
  std::unique_ptr<const detail::compiled_program> program_;
};

/// The part of `memory` before these extents, without a copy: what is filled of a cache with its capacity. Borrows the
/// memory; extents beyond it are a `shape_mismatch` error.
argument leading_part(const argument& memory, const dims& lens);

/// Optimizes the program, plans its memory and makes its kernels. Throws `error`.
executable compile(program p, const target& t, const compile_options& options = {});

}  // namespace kiln
