#pragma once
#include <map>

#include "kiln/lower/memory_plan.hpp"
#include "kiln/runtime/executable.hpp"

namespace kiln::detail {

/// A buffer of a plan whose sizes a run binds.
struct planned_buffer : lower::buffer {
  literal constant;                   ///< kind constant
  std::vector<std::uint32_t> values;  ///< kind symbolic: slots of its elements
  dtype type = dtype::i64;            ///< kind symbolic: how they are stored
  std::uint32_t bytes_slot = 0;       ///< slot of its size
};

/// A tensor as slots of a dimension program.
struct operand {
  std::uint32_t buffer = 0;
  dtype type = dtype::f32;
  inline_vector<std::uint32_t, max_rank> lens, strides;
  std::uint32_t offset = 0;
};

struct step {
  std::unique_ptr<kernel> run;
  std::uint32_t first_operand = 0, inputs = 0, outputs = 0;
  bool last_touch = false;  ///< its results go to the caller, and no later step reads them
  static constexpr std::uint32_t uncounted = 0xffff'ffff;
  std::uint32_t flops = uncounted;  ///< slot, where estimates ask for it
};

/// Consecutive steps that fall into branches: no step of one reads what a step of another writes.
struct branch_group {
  std::uint32_t first = 0, last = 0;                 ///< steps, and one past them
  std::vector<std::vector<std::uint32_t>> branches;  ///< each one's steps in order
  std::vector<std::uint32_t> edges;                  ///< buffers whose data comes from before it or is read after it
};

/// Which groups' branches run side by side, for the sizes of a run.
struct branch_choice {
  struct group {
    const branch_group* of = nullptr;
    std::span<const std::uint32_t> order;  ///< its branches, in the order in which they are begun
    std::size_t scratch = 0;               ///< bytes that each of those that run at once has
  };
  static constexpr std::uint32_t none = 0xffff'ffff, several = none - 1;

  std::vector<group> groups;          ///< by first step; no two share a step
  std::vector<std::uint32_t> orders;  ///< of all groups
  std::vector<std::uint32_t> begin;   ///< of each step: its group's first step, or itself
  /// Of each buffer, where its first step and its last one are of a group: the branch that alone touches it there, by
  /// its number among all, or `several`. Else `none`.
  std::vector<std::uint32_t> first_owner, last_owner;
  // while groups are chosen, in estimated seconds: each step by one thread and by all, branches, and threads' ends
  std::vector<double> alone, together, times, ends;
};

/// A dimension that must equal another when bound, and who asks.
struct obligation {
  std::uint32_t left = 0, right = 0;
  std::string rule;
};

/// An op whose extents a compiler could not see: its shape rule is asked again when they are known. It may stand alone
/// or in a group.
struct open_rule {
  struct operand {
    dtype type = dtype::f32;
    small_vector<std::uint32_t> lens;  ///< slots
  };
  operation op;
  small_vector<operand> operands;
  std::string instruction;
};

using lower::growing_output;

/// The aliases as indices; `output_alias` says what is an error.
std::vector<growing_output> growing_outputs(const module_graph& graph, const std::vector<output_alias>& aliases);

/// Everything a run needs, resolved as far as symbols allow.
struct plan {
  dimension_program sizes;
  std::vector<planned_buffer> buffers;
  std::vector<operand> operands;
  std::vector<step> steps;
  std::vector<step_info> infos;
  std::vector<obligation> obligations;
  std::vector<open_rule> rules;
  std::vector<growing_output> growing;
  std::vector<operand> inputs, outputs;
  std::vector<branch_group> groups;        ///< at most one that begins at a step, by first step
  std::vector<std::uint32_t> arena_order;  ///< the arena's buffers that a step touches, by first use
  std::size_t constant_bytes = 0;
  std::size_t nhwc_results = 0;  ///< results whose layout is NHWC
};

/// Multiplications and additions of the contractions in an instruction.
dimension flops(const program& whole, const module_graph& graph, const basic_instruction<operation>& ins);

/// The constants that plans read as they are, by the address of the data that the program has of them.
using held_constants = std::map<const std::byte*, literal>;

/// What a plan may choose beyond what the target's estimates say.
struct plan_choices {
  tuning_session* tuning = nullptr;
  bool allow_nhwc = true;       ///< whether any result may be NHWC
  bool near_constants = false;  ///< of the program that this is, or a part of (`constants_stay_near`)
  derived_data* derived = nullptr;
  held_constants* held = nullptr;
};

/// Constants that kernels have packed, and nothing else reads, are freed from the program as the next kernel is made.
plan make_plan(program& p, const target& t, const compile_options& options, const plan_choices& choices,
               thread_pool& pool, std::vector<std::string>& remarks);

}  // namespace kiln::detail
