#pragma once
#include <algorithm>

#include "kiln/runtime/executable.hpp"

namespace kiln::detail {

/// Where a value's bytes live.
enum class place_kind : std::uint8_t { input, output, constant, symbolic, arena };

/// A piece of memory of the plan.
struct storage {
  place_kind kind = place_kind::arena;
  std::uint32_t index = 0;                      ///< of the input or output
  literal constant;                             ///< kind constant
  std::vector<std::uint32_t> values;            ///< kind symbolic: slots of its elements
  dtype type = dtype::i64;                      ///< kind symbolic: how they are stored
  std::uint32_t bytes_slot = 0;                 ///< slot of its size
  std::uint32_t first = 0xffff'ffff, last = 0;  ///< steps that touch it
};

/// A tensor as slots of a dimension program.
struct operand {
  std::uint32_t storage = 0;
  dtype type = dtype::f32;
  inline_vector<std::uint32_t, max_rank> lens, strides;
  std::uint32_t offset = 0;
};

struct step {
  std::unique_ptr<kernel> run;
  std::uint32_t first_operand = 0, inputs = 0, outputs = 0;
  bool last_touch = false;  ///< its results go to the caller, and no later step reads them
  std::uint32_t flops = 0;  ///< slot, where the plan has groups
};

/// Consecutive steps that fall into branches: no step of one reads what a step of another writes.
struct branch_group {
  std::uint32_t first = 0, last = 0;                 ///< steps, and one past them
  std::vector<std::vector<std::uint32_t>> branches;  ///< each one's steps in order
  std::vector<std::uint32_t> edges;                  ///< storages whose data comes from before it or is read behind it
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
  /// Of each storage, where its first step and its last one are of a group: the branch that alone touches it there, by
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

/// An output that lies in the memory of an input, which has room for `capacity` along `axis`.
struct growing_output {
  std::uint32_t output = 0, input = 0;
  std::size_t axis = 0;
  dimension capacity;
  std::uint32_t storage = 0;
  /// How a tensor of these extents lies in that memory.
  layout place(const dims& lens) const {
    dims whole = lens;
    whole[axis] = capacity;
    return {lens, row_major(whole), 0};
  }
};

/// The aliases as indices; `output_alias` says what is an error.
std::vector<growing_output> growing_outputs(const module_graph& graph, const std::vector<output_alias>& aliases);

/// Everything a run needs, resolved as far as symbols allow.
struct plan {
  dimension_program sizes;
  std::vector<storage> storages;
  std::vector<operand> operands;
  std::vector<step> steps;
  std::vector<step_info> infos;
  std::vector<obligation> obligations;
  std::vector<open_rule> rules;
  std::vector<growing_output> growing;
  std::vector<operand> inputs, outputs;
  std::vector<branch_group> groups;        ///< at most one that begins at a step, by first step
  std::vector<std::uint32_t> arena_order;  ///< arena storages that a step touches, by first use
  std::size_t constant_bytes = 0;
  bool turns_images = false;  ///< whether some results lie with their channels last

  /// Finds the last two, and which steps touch results last, once no step is added any more.
  void sum_up() {
    for (std::uint32_t s = 0; s < storages.size(); ++s) {
      if (storages[s].kind == place_kind::constant) constant_bytes += storages[s].constant.data().size();
      if (storages[s].kind == place_kind::arena && storages[s].first != 0xffff'ffff) arena_order.push_back(s);
    }
    std::stable_sort(arena_order.begin(), arena_order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return storages[a].first < storages[b].first; });
    for (std::size_t i = 0; i < steps.size(); ++i) {
      step& st = steps[i];
      st.last_touch = st.outputs != 0;
      for (std::uint32_t k = 0; k < st.outputs; ++k) {
        const storage& memory = storages[operands[st.first_operand + st.inputs + k].storage];
        st.last_touch = st.last_touch && memory.kind == place_kind::output && memory.last == i;
      }
    }
  }
};

/// Multiplications and additions of the contractions in an instruction.
dimension flops(const program& whole, const module_graph& graph, const basic_instruction<operation>& ins);

/// What a plan may choose beyond what the target's estimates say.
struct plan_choices {
  tuning_session* tuning = nullptr;
  bool turns_images = true;     ///< whether any result may lie with its channels last
  bool near_constants = false;  ///< of the program that this is, or a part of (`constants_stay_near`)
};

/// Constants that kernels have packed, and nothing else reads, are freed from the program as the next kernel is made.
plan make_plan(program& p, const target& t, const compile_options& options, const plan_choices& choices,
               thread_pool& pool, std::vector<std::string>& remarks);

}  // namespace kiln::detail
