#pragma once
#include "kiln/static_program/plan/winograd_nchw.hpp"
#include "kiln/static_program/step/epilogue.hpp"

namespace kiln::aot {

/// A convolution by Winograd, whose epilogue runs on vectors of filters. A result smaller than the convolution's is
/// the maximum of 2x2 windows.
template <class Step> struct winograd_nchw_step {
  using body = contraction_body<Step>;
  static constexpr lower::contraction_split split = body::split;
  static constexpr place image = Step::in[split.operands[0]], out = Step::out[0];
  static constexpr kernels::winograd_nchw_extents plan =
      plan_winograd_nchw(body::product_op::op, image, Step::in[split.operands[1]], out);
  using lanes = vector_lanes<float>;
  using value = lanes::value;

  static KILN_FN value apply_epilogue(const step_memory& m, std::int64_t filter, value sums) {
    return body::template apply_epilogue<lanes>(sums, [&](auto k) {
      constexpr std::size_t input = body::extra[k];
      constexpr place from = Step::in[input];
      constexpr std::int64_t step = from.lens.size() > 1 && from.lens[1] != 1 ? from.strides[1] : 0;
      return lanes::load<float, step, lanes::count>(buffer_of<Step, input>(m) + from.offset + filter * step);
    });
  }

  static KILN_FN void run(const step_memory& m) {
    const float* const weights = buffer_of<Step, split.operands[1]>(m);
    for (std::int64_t n = 0; n < image.lens[0]; ++n)
      kernels::static_winograd_nchw<plan, lanes::count, native_bytes == 64 ? 24 : 12>(
          buffer_of<Step, split.operands[0]>(m) + image.offset + n * image.strides[0], weights,
          buffer_of<Step, Step::inputs>(m) + out.offset + n * out.strides[0], reinterpret_cast<float*>(m.scratch),
          [&](std::int64_t filter, value sums) { return apply_epilogue(m, filter, sums); },
          [](value a, value b) { return kiln::max(a, b); });
  }
};

}  // namespace kiln::aot
