#pragma once
#include "kiln/op/index/gather.hpp"
#include "kiln/static_program/step/walk.hpp"

namespace kiln::aot {

/// Gather along an axis (see op::gather).
template <class Step, const op::gather& Op> struct gather_step {
  static constexpr place data = Step::in[0], indices = Step::in[1], out = Step::out[0];
  static constexpr auto axis = static_cast<std::size_t>(normal_axis(Op.axis, data.lens.size()));
  static constexpr std::size_t index_rank = indices.lens.size();

  static KILN_FN void run(const step_memory& m) {
    const auto* const from = buffer_of<Step, 0>(m);
    const auto* const index = buffer_of<Step, 1>(m);
    auto* const to = buffer_of<Step, Step::inputs>(m);
    constexpr std::int64_t picks = product(indices.lens), outer = count(0, axis),
                           inner = count(axis + 1, data.lens.size());
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t k = 0; k < picks; ++k) {
        const std::int64_t at =
            nearest_index(static_cast<std::int64_t>(index[element_offset<Step, 1, index_rank>(k)]), data.lens[axis]);
        for (std::int64_t i = 0; i < inner; ++i)
          to[element_offset<Step, Step::inputs, out.lens.size()>((o * picks + k) * inner + i)] =
              from[element_offset<Step, 0, data.lens.size()>((o * data.lens[axis] + at) * inner + i)];
      }
  }

 private:
  static constexpr std::int64_t count(std::size_t from, std::size_t to) {
    std::int64_t n = 1;
    for (std::size_t d = from; d < to; ++d) n *= data.lens[d];
    return n;
  }
};

}  // namespace kiln::aot
