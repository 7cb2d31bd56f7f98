#pragma once
#include <map>

#include "kiln/runtime/counting_kernel.hpp"
#include "kiln/runtime/impl/run/compiled_program.hpp"
#include "kiln/runtime/run_options.hpp"

namespace kiln::detail {

/// Symbols whose values a run knows so far.
struct known_symbols {
  bindings values;
  symbol_values list;

  explicit known_symbols(const symbol_values& outer) {
    for (const auto& [symbol, value] : outer) bind(symbol, value);
  }
  void bind(dimension symbol, std::int64_t value) {
    const bool known = values.find(symbol).has_value();
    values.bind(symbol, value);
    if (!known) list.emplace_back(symbol, value);
  }
  /// Gives the symbols of a stated shape the extents of what was made; a misfit is a `shape_mismatch` error.
  void match(const shape& stated, const shape& made, std::string_view what);
};

using compiled_part = std::unique_ptr<const compiled_program>;

/// What a loop's body is given and asked, where that is less than the op says.
struct loop_body {
  /// Whether output 0 says if the loop goes on; else there is no such output: it goes on as long as it may.
  bool asks = true;
  /// Operands of which the body reads the slice along the first dim at its iteration's number alone: it is given that.
  std::vector<std::uint32_t> sliced;
};

/// Rewrites a body, the main module of `p`, so that it is given and asked as little as it can be; `carried`: how many
/// values it carries.
loop_body simplify_loop_body(program& p, std::size_t carried);

/// An instruction that runs on whole arguments: its results are arguments of their own.
struct host_step {
  operation op;
  std::vector<std::uint32_t> in, out;  ///< slots
  shapes results;                      ///< as the program states them
  std::string name;
  std::vector<compiled_part> bodies;
  loop_body loop;
  /// What runs it on the target's device instead, counting first; null: nothing does.
  std::unique_ptr<const kernel> on_device;
  const counting_kernel* counts = nullptr;
};

/// Instructions that are planned together, whose extents are all known when the segment begins, then the host steps
/// that need none but their results and those of earlier segments.
struct segment {
  compiled_part planned;               ///< null: there are host steps alone
  std::vector<std::uint32_t> in, out;  ///< slots of its inputs and outputs
  /// Outputs that grow in place: which of the segment's, and which of the program's it is.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> growing;
  std::vector<host_step> steps;
};

/// A program with instructions that only a run can size, cut after them. Slots hold what segments hand on.
struct segmentation {
  std::vector<segment> segments;
  std::size_t slots = 0;
  std::vector<std::pair<std::uint32_t, argument>> constants;  ///< what host steps and outputs read of literals
  std::map<std::uint32_t, literal> symbolic;                  ///< the same, of numbers that mention symbols
  std::vector<std::uint32_t> outputs;                         ///< slots; inputs are the first slots
};

/// Whether an instruction runs on the host: it is dynamic, or touches elements that are objects.
bool runs_on_host(const module_graph& m, std::uint32_t i);

/// Whether a program has host steps: it can't be planned as a whole.
bool has_segments(const program& p);

/// Cuts a program and compiles its segments; the report gets their steps. Of `aliases` each output is made in a
/// segment that reads the input; others are an `unsupported` error.
segmentation cut_program(compiled_program& p, const target& t, const plan_choices& choices,
                         const std::vector<output_alias>& aliases);

std::unique_ptr<const runner> make_segmented_program(compiled_program& p, const target& t, const plan_choices& choices,
                                                     const std::vector<output_alias>& aliases);

/// Whether a step's result lies in its first operand, which it doesn't read.
bool is_view(const host_step& step);

class device_place;

/// Runs one host step; `inner` has memory for each of its bodies, `wanted` what the caller has for its results, where
/// it has some: what bodies make of that shape is made there. What bodies carry lies at `place`.
small_vector<argument> run_host_step(const host_step& step, std::span<const argument> in, const known_symbols& symbols,
                                     std::span<run_memory> inner, const run_options& options,
                                     std::span<const argument> wanted, thread_pool& pool, const device_place& place);

}  // namespace kiln::detail
