#pragma once
#include "kiln/graph/module.hpp"
#include "kiln/pass/note.hpp"

namespace kiln {

/// What every pass of a compilation did, in the order of the pipeline.
using compile_notes = small_vector<pass_note>;

/// A pass as a value.
template <class Program> struct named_pass {
  std::string_view name;
  pass_note (*run)(Program& p) = nullptr;
};

/// Sees the program after every pass: what printing and per-pass differences hang on.
struct pass_observer {
  void (*call)(void* context, const pass_note& note, const program& after) = nullptr;
  void* context = nullptr;
};

/// Which passes run.
struct pass_options {
  bool simplify = true;  ///< rewrites that keep the ops' own granularity
  bool fuse = true;      ///< grouping of instructions into kernels
  bool verify = false;   ///< check every invariant of the graph after each pass (debug builds always do)
  /// Passes of the caller's own, run between simplification and fusion.
  small_vector<named_pass<program>> extra{};
  pass_observer observer{};
};

/// Passes that write a program in the forms that a target's kernels have.
struct target_passes {
  std::span<const named_pass<program>> forms{};  ///< before the others in each round of simplification
  std::span<const named_pass<program>> fuse{};   ///< after the other fusion passes
};

/// Runs the pipeline (pass/passes.hpp lists it) and a target's passes on a program. Throws `error` where a pass leaves
/// a broken graph.
compile_notes optimize(program& p, const pass_options& options = {}, const target_passes& own = {});

}  // namespace kiln
