#pragma once
#include "kiln/graph/verify.hpp"
#include "kiln/pass/common_subexpression.hpp"
#include "kiln/pass/constant_folding.hpp"
#include "kiln/pass/dead_code.hpp"
#include "kiln/pass/fold_batch_norm.hpp"
#include "kiln/pass/fuse_attention.hpp"
#include "kiln/pass/fuse_contraction.hpp"
#include "kiln/pass/fuse_pointwise.hpp"
#include "kiln/pass/fuse_reduce.hpp"
#include "kiln/pass/halve_rotations.hpp"
#include "kiln/pass/merge_products.hpp"
#include "kiln/pass/move_pooling.hpp"
#include "kiln/pass/normalize.hpp"
#include "kiln/pass/pipeline.hpp"
#include "kiln/pass/remove_identity.hpp"
#include "kiln/pass/simplify_algebra.hpp"
#include "kiln/pass/simplify_views.hpp"
#include "kiln/pass/sink_into_branches.hpp"
#include "kiln/pass/sink_pointwise.hpp"
#include "kiln/pass/split_rows.hpp"
#include "kiln/pass/unread_taps.hpp"

namespace kiln {

/// The pipeline's first part: rewrites that keep the ops' own granularity, repeated until nothing changes.
template <class Program>
inline constexpr named_pass<Program> simplifying_passes[] = {
    {"normalize", [](Program& p) { return normalize(p); }},
    {"remove_identity", [](Program& p) { return remove_identity(p); }},
    {"constant_folding", [](Program& p) { return constant_folding(p); }},
    {"common_subexpression", [](Program& p) { return common_subexpression(p); }},
    {"simplify_algebra", [](Program& p) { return simplify_algebra(p); }},
    {"simplify_views", [](Program& p) { return simplify_views(p); }},
    {"halve_rotations", [](Program& p) { return halve_rotations(p); }},
    {"fold_batch_norm", [](Program& p) { return fold_batch_norm(p); }},
    {"move_pooling", [](Program& p) { return move_pooling(p); }},
    {"cut_unread_taps", [](Program& p) { return cut_unread_taps(p); }},
    {"dead_code", [](Program& p) { return dead_code(p); }},
};

/// The second part, run once: grouping of instructions into kernels.
template <class Program>
inline constexpr named_pass<Program> fusing_passes[] = {
    {"fuse_attention", [](Program& p) { return fuse_attention(p); }},
    {"merge_products", [](Program& p) { return merge_products(p); }},
    {"sink_pointwise", [](Program& p) { return sink_pointwise(p); }},
    {"sink_into_branches", [](Program& p) { return sink_into_branches(p); }},
    {"split_rows", [](Program& p) { return split_rows(p); }},
    {"simplify_views", [](Program& p) { return simplify_views(p); }},
    {"constant_folding", [](Program& p) { return constant_folding(p); }},
    {"common_subexpression", [](Program& p) { return common_subexpression(p); }},
    {"fuse_contraction", [](Program& p) { return fuse_contraction(p); }},
    {"fuse_reduce", [](Program& p) { return fuse_reduce(p); }},
    {"fuse_pointwise", [](Program& p) { return fuse_pointwise(p); }},
};

namespace detail {

// What a pass did in several rounds is one note.
constexpr void collect(compile_notes& notes, std::size_t from, pass_note&& note) {
  for (std::size_t k = from; k < notes.size(); ++k) {
    if (notes[k].pass != note.pass) continue;
    notes[k].count(note.counts);
    for (text& remark : note.remarks) {
      bool known = false;
      for (const text& old : notes[k].remarks) known = known || old == remark;
      if (!known) notes[k].remark(std::move(remark));
    }
    return;
  }
  notes.push_back(std::move(note));
}

}  // namespace detail

/// The lists of one run.
template <class Program> struct pass_lists { std::span<const named_pass<Program>> simplify, extra, fuse; };

/// Runs lists of passes. `observe(note, program)` is called after every pass.
template <class Program, class Observe>
constexpr compile_notes run_passes(Program& p, const pass_lists<Program>& lists, bool check, Observe&& observe) {
  constexpr int most_rounds = 8;
  compile_notes notes;
  const auto run_one = [&](const named_pass<Program>& step, std::size_t from) {
    pass_note note = step.run(p);
    const bool changed = note.changed();
    if (check) verify(p);
    observe(static_cast<const pass_note&>(note), static_cast<const Program&>(p));
    detail::collect(notes, from, std::move(note));
    return changed;
  };
  // C++ leaves open which operand of an expression is built first: the result must not show it.
  if (!lists.simplify.empty()) for_each_module(p, [](auto& m) { m.renumber(); });
  // To a fixpoint: until no pass has changed anything since it ran last.
  const std::size_t count = lists.simplify.size();
  for (std::size_t k = 0, unchanged = 0; unchanged < count && k < count * most_rounds; ++k)
    unchanged = run_one(lists.simplify[k % count], 0) ? 0 : unchanged + 1;
  for (const auto& list : {lists.extra, lists.fuse}) {
    const std::size_t from = notes.size();
    for (const named_pass<Program>& step : list) run_one(step, from);
  }
  return notes;
}

/// Runs the pipeline on a program of any registry, in constant evaluation or at run time.
template <class Program>
constexpr compile_notes optimize_graph(Program& p, const pass_options& options = {},
                                       std::span<const named_pass<Program>> extra = {}) {
  pass_lists<Program> lists;
  if (options.simplify) lists.simplify = simplifying_passes<Program>;
  lists.extra = extra;
  if (options.fuse) lists.fuse = fusing_passes<Program>;
  return run_passes(p, lists, options.verify, [](const pass_note&, const Program&) {});
}

}  // namespace kiln
