#pragma once
#include "kiln/static_program/kernel/depthwise_nhwc.hpp"
#include "kiln/static_program/plan/conv_nhwc.hpp"
#include "kiln/static_program/step/epilogue.hpp"

namespace kiln::aot {

/// A convolution with a result in NHWC, or a product of rows with a matrix, and the epilogue on vectors of the channels
/// of a pixel, or columns of a row.
template <class Step> struct image_step {
  using body = contraction_body<Step>;
  static constexpr lower::contraction_split split = body::split;
  static constexpr bool convolves = std::is_same_v<typename body::product_op::type, op::convolution>;
  static constexpr place image_of(std::size_t k) {
    return convolves ? Step::operand(k) : rows_as_image(Step::operand(k));
  }
  static constexpr place image = image_of(split.operands[0]);
  static constexpr kernels::window_extents windows = [] {
    if constexpr (convolves)
      return plan_windows(body::product_op::op, image, Step::in[split.operands[1]], Step::out[0]);
    else
      return plan_rows(Step::body, Step::in, Step::out[0]);
  }();
  using lanes = vector_lanes<float>;
  using value = lanes::value;

  // Element offset of a pixel of an operand that is broadcast to the result's dims.
  template <std::size_t K> static KILN_FN std::int64_t pixel_of(std::int64_t n, std::int64_t y, std::int64_t x) {
    constexpr place p = image_of(K);
    return p.offset + (p.lens[0] == 1 ? 0 : n * p.strides[0]) + (p.lens[2] == 1 ? 0 : y * p.strides[2]) +
           (p.lens[3] == 1 ? 0 : x * p.strides[3]);
  }
  // Applies the epilogue to the sums of N channels of a pixel and stores them.
  template <int N>
  static KILN_FN void apply_epilogue(const step_memory& m, std::int64_t n, std::int64_t y, std::int64_t x,
                                     std::int64_t channel, value sums) {
    const value made = body::template apply_epilogue<lanes>(sums, [&](auto k) {
      constexpr std::size_t input = body::extra[k];
      constexpr place from = image_of(input);
      constexpr std::int64_t step = from.lens[1] == 1 ? 0 : from.strides[1];
      return lanes::load<float, step, N>(buffer_of<Step, input>(m) + pixel_of<input>(n, y, x) + channel * step);
    });
    float* const to = buffer_of<Step, Step::inputs>(m) + pixel_of<Step::inputs>(n, y, x) + channel;
    // results that come next are asked for meanwhile, so that stores do not wait for their lines
    if constexpr (Step::what.kind == step_kind::windows)
      __builtin_prefetch(to + 8 * image_of(Step::inputs).strides[3], 1);
    lanes::store<float, 1, N>(to, made);
  }

  static KILN_FN void run(const step_memory& m) {
    constexpr int registers = native_bytes == 64 ? 24 : 12;
    const float* const weights = buffer_of<Step, split.operands[1]>(m);
    float* const memory = reinterpret_cast<float*>(m.scratch);
    for (std::int64_t n = 0; n < image.lens[0]; ++n) {
      const float* const x = buffer_of<Step, split.operands[0]>(m) + image.offset + n * image.strides[0];
      const auto put = [&](std::int64_t y, std::int64_t px, std::int64_t channel, auto count, value sums) {
        apply_epilogue<decltype(count)::value>(m, n, y, px, channel, sums);
      };
      if constexpr (Step::what.kind == step_kind::windows)
        kernels::static_conv_nhwc<windows, lanes::count, registers>(x, weights, memory, put);
      else if constexpr (Step::what.kind == step_kind::winograd_nhwc)
        kernels::static_winograd_nhwc<plan_winograd_nhwc(windows), lanes::count, registers>(x, weights, memory, put);
      else
        kernels::static_depthwise_nhwc<windows, lanes::count, native_bytes == 64 ? 8 : 4>(x, weights, put);
    }
  }
};

}  // namespace kiln::aot
