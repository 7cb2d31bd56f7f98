#pragma once
#include "kiln/op/nn/attention.hpp"
#include "kiln/static_program/plan/attention.hpp"
#include "kiln/static_program/step/body.hpp"

namespace kiln::aot {

/// What attention computes of whole vectors.
struct attention_math {
  using value = native_vec<float>;
  static KILN_FN value exp(value x) { return kiln::exp(x); }
  static KILN_FN value max(value a, value b) { return kiln::max(a, b); }
  static KILN_FN float sum(value x) { return reduce_add(x); }
};

/// Attention of f32 (see op::attention): the scores of a block of queries lie in scratch memory.
template <class Step, const op::attention& Op> struct attention_step {
  static constexpr kernels::attention_extents plan =
      plan_attention(Step::in[0], Step::in[1], Step::in[2], Step::out[0], Op.causal);

  static KILN_FN float with_mask(const step_memory& m, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j,
                                 float s) {
    if constexpr (Step::inputs == 4) {
      constexpr place mask = Step::in[3];
      const std::int64_t at[4] = {b, h, i, j};
      std::int64_t o = mask.offset;
      for (std::size_t d = 0; d < 4; ++d)
        if (mask.lens[d] != 1) o += at[d] * mask.strides[d];
      const auto x = buffer_of<Step, 3>(m)[o];
      if constexpr (mask.type == dtype::boolean)
        return x ? s : -std::numeric_limits<float>::infinity();
      else
        return s + x;
    } else {
      return s;
    }
  }
  static KILN_FN void run(const step_memory& m) {
    kernels::static_attention<plan, native_lanes<float>, native_bytes == 64 ? 24 : 12, attention_math>(
        buffer_of<Step, 0>(m) + Step::in[0].offset, buffer_of<Step, 1>(m) + Step::in[1].offset,
        buffer_of<Step, 2>(m) + Step::in[2].offset, buffer_of<Step, Step::inputs>(m) + Step::out[0].offset,
        reinterpret_cast<float*>(m.scratch), Op.scale,
        [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j, float s) {
          return with_mask(m, b, h, i, j, s);
        });
  }
};

}  // namespace kiln::aot
