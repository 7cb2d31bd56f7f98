#pragma once
#include "kiln/fixed/body.hpp"
#include "kiln/fixed/filtering_plan.hpp"

namespace kiln::fixed {

/// A convolution by minimal filtering, finished by the body's pointwise ops on vectors of filters; where the step's
/// result is smaller than the convolution's, it is the maximum of 2x2 windows.
template <class Step>
struct filtering_step {
  static constexpr product_inputs sources = product_operands(Step::body);
  static constexpr std::size_t product_node = product_node_of(Step::body);
  static constexpr auto extra = epilogue_inputs(Step::body);
  static constexpr place image = Step::in[sources.lhs], out = Step::out[0];
  static constexpr kernels::filtering_extents plan =
      plan_filtering(node_op<Step, product_node>::op, image, Step::in[sources.rhs], out);
  using lanes = vector_lanes<float>;
  using value = lanes::value;

  static KILN_FN value finish(const step_memory& m, std::int64_t filter, value sums) {
    lanes::reg r[Step::nodes];
    r[product_node].v = sums;
    each<extra.size()>([&](auto k) {
      constexpr std::size_t input = extra[k];
      constexpr place from = Step::in[input];
      constexpr std::int64_t step = from.lens.size() > 1 && from.lens[1] != 1 ? from.strides[1] : 0;
      r[input].v = lanes::load<float, step, lanes::count>(buffer_of<Step, input>(m) + from.offset + filter * step);
    });
    each<Step::nodes>([&](auto k) {
      if constexpr (Step::body[k].op != node::parameter && k != product_node) compute_node<Step, k, lanes>(r);
    });
    return r[Step::result(0)].v;
  }

  static KILN_FN void run(const step_memory& m) {
    const float* const weights = buffer_of<Step, sources.rhs>(m);
    for (std::int64_t n = 0; n < image.lens[0]; ++n)
      kernels::fixed_filtering<plan, lanes::count, native_bytes == 64 ? 24 : 12>(
          buffer_of<Step, sources.lhs>(m) + image.offset + n * image.strides[0], weights,
          buffer_of<Step, Step::inputs>(m) + out.offset + n * out.strides[0], reinterpret_cast<float*>(m.scratch),
          [&](std::int64_t filter, value sums) { return finish(m, filter, sums); },
          [](value a, value b) { return kiln::max(a, b); });
  }
};

}  // namespace kiln::fixed
