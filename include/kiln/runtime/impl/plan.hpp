#pragma once
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
};

/// A dimension that must equal another when bound, and who asks.
struct obligation {
  std::uint32_t left = 0, right = 0;
  std::string rule;
};

/// Everything a run needs, resolved as far as symbols allow.
struct plan {
  dimension_program sizes;
  std::vector<storage> storages;
  std::vector<operand> operands;
  std::vector<step> steps;
  std::vector<step_info> infos;
  std::vector<obligation> obligations;
  std::vector<std::uint32_t> arena_order;  ///< arena storages that a step touches, by first use
  std::vector<operand> inputs, outputs;
  std::size_t constant_bytes = 0;
};

/// Multiplications and additions of the contractions in an instruction.
dimension flops(const program& whole, const module_graph& graph, const basic_instruction<operation>& ins);

/// Notes the steps whose results go to the caller and that no later step touches.
inline plan with_last_touches(plan p) {
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    step& st = p.steps[i];
    st.last_touch = st.outputs != 0;
    for (std::uint32_t k = 0; k < st.outputs; ++k) {
      const storage& memory = p.storages[p.operands[st.first_operand + st.inputs + k].storage];
      st.last_touch = st.last_touch && memory.kind == place_kind::output && memory.last == i;
    }
  }
  return p;
}

plan make_plan(const program& p, const target& t, thread_pool& pool, std::vector<std::string>& remarks);

}  // namespace kiln::detail
