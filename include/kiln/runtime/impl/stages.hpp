#pragma once
#include <map>

#include "kiln/runtime/executable.hpp"
#include "kiln/runtime/impl/plan.hpp"
#include "kiln/runtime/run_options.hpp"

namespace kiln::detail {

/// Symbols whose values a run knows so far.
struct known_symbols {
  bindings values;
  std::vector<std::pair<dimension, std::int64_t>> list;

  known_symbols() = default;
  explicit known_symbols(std::vector<std::pair<dimension, std::int64_t>> outer) {
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

/// An instruction that runs on whole arguments between two planned parts: its results are arguments of their own.
struct host_step {
  operation op;
  std::vector<std::uint32_t> in, out;  ///< slots
  shapes results;                      ///< as the program states them
  std::string name;
  std::vector<executable> bodies;
};

/// Instructions that are planned as a whole.
struct segment {
  executable run;
  std::vector<std::uint32_t> in, out;  ///< slots
};

/// A program with instructions that only a run can size, cut where they stand: what needs none of their results, these
/// instructions, what needs their results, and so on. In every part all extents are known when it begins.
struct staging {
  struct stage {
    std::optional<segment> planned;
    std::vector<host_step> steps;
  };
  std::vector<stage> stages;
  std::size_t slots = 0;
  std::vector<std::pair<std::uint32_t, argument>> constants;  ///< what host steps and outputs read of literals
  std::map<std::uint32_t, literal> symbolic;                  ///< the same, of numbers that mention symbols
  std::vector<std::uint32_t> outputs;                         ///< slots; inputs are the first slots
};

/// Whether an instruction runs on the host: it is dynamic, or touches elements that are objects.
bool runs_on_host(const module_graph& m, std::uint32_t i);

/// Access of the runtime's parts to each other.
struct executable_access {
  /// An executable of a program that passes have seen already, a part of another one.
  static executable plan(program p, const target& t, std::shared_ptr<thread_pool> pool, bool near_constants);
  static void take_inputs(executable::state& s, const program& p);
  static void place_on_device(executable::state& s, const target& t);
  static void make_steps(executable::state& s, const target& t, const compile_options& options,
                         const plan_choices& choices);
  /// Plans as measurements or the tuning's cache say, and takes the place of `s`.
  static void make_tuned_steps(std::unique_ptr<executable::state>& s, const target& t, const compile_options& options);
  /// A run in which some symbols are known from outside.
  static void run(const executable& e, workspace& w, std::span<const argument> inputs, std::span<argument> outputs,
                  const run_options& options, const std::vector<std::pair<dimension, std::int64_t>>& outer);
};

staging make_staging(const program& p, const target& t, const std::shared_ptr<thread_pool>& pool, bool near_constants,
                     compile_report& report);

/// Runs one host step; `inner` holds a workspace for each of its bodies.
small_vector<argument> run_host_step(const host_step& step, std::span<const argument> in, const known_symbols& symbols,
                                     std::span<workspace> inner, const run_options& options);

}  // namespace kiln::detail
