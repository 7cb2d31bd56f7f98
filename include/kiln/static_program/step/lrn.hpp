#pragma once
#include "kiln/kernel/norm/lrn_block.hpp"
#include "kiln/op/nn/lrn.hpp"
#include "kiln/static_program/step/walk.hpp"

namespace kiln::aot {

/// Local response normalization in f32 (see op::lrn): vectors of channels where these lie side by side, else of
/// pixels.
template <class Step, const op::lrn& Op> struct lrn_step {
  static constexpr place in = Step::in[0], out = Step::out[0];
  static constexpr kernels::lrn_problem problem = [] {
    kernels::lrn_problem p;
    p.channels = in.lens[1];
    p.size = Op.size;
    p.alpha = Op.alpha, p.beta = Op.beta, p.bias = Op.bias;
    return p;
  }();
  static constexpr bool of_channels = in.lens[1] > 1 && in.strides[1] == 1 && out.strides[1] == 1;
  // over the pixels of all images
  static constexpr walk<2> pixels = make_walk<2>(
      in.lens, [](std::size_t k, std::size_t d) { return Step::operand(k).strides[d]; },
      [](std::size_t d) { return d != 1; });
  static constexpr std::size_t outer_dims = pixels.extent.empty() ? 0 : pixels.extent.size() - 1;

  static KILN_FN void run(const step_memory& m) {
    const kernels::lrn_block part(problem);
    const float* const from = buffer_of<Step, 0>(m) + in.offset;
    float* const to = buffer_of<Step, Step::inputs>(m) + out.offset;
    constexpr bool lines = !of_channels && pixels.inner_step(0) == 1 && pixels.inner_step(1) == 1;
    constexpr std::int64_t inner = pixels.inner(),
                           most = lines ? kernels::lrn_block::vectors_at_once * native_lanes<float> : 1;
    for (std::int64_t row = 0; row < pixels.outer(); ++row)
      for (std::int64_t i = 0; i < inner; i += most) {
        const float* const x = from + offset_at<pixels, 0, outer_dims>(row) + i * pixels.inner_step(0);
        float* const y = to + offset_at<pixels, 1, outer_dims>(row) + i * pixels.inner_step(1);
        if constexpr (of_channels)
          part.of_channels(x, y);
        else
          part.of_planes(x, in.strides[1], y, out.strides[1], inner - i < most ? inner - i : most);
      }
  }
};

}  // namespace kiln::aot
