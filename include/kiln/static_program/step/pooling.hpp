#pragma once
#include "kiln/op/nn/pooling.hpp"
#include "kiln/static_program/step/walk.hpp"

namespace kiln::aot {

/// Pooling over one to three spatial dims (see op::pooling).
template <class Step, const op::pooling& Op> struct pooling_step {
  static constexpr place in = Step::in[0], out = Step::out[0];
  using stored = stored_of<in.type>;
  using value = compute_of<in.type>;
  static constexpr std::size_t axes = in.lens.size() - 2;
  static_assert(Op.mode == op::pooling_mode::max || is_float(in.type));

  // missing spatial dims have extent 1
  struct dim {
    std::int64_t in = 1, out = 1, in_step = 0, out_step = 0, length = 1, stride = 1, dilation = 1, begin = 0, end = 0;
  };
  struct all_dims {
    dim d[3];
  };
  static constexpr all_dims dims = [] {
    all_dims a;
    for (std::size_t d = 0; d < axes; ++d)
      a.d[3 - axes + d] = {in.lens[d + 2],
                           out.lens[d + 2],
                           in.strides[d + 2],
                           out.strides[d + 2],
                           Op.lengths[d],
                           Op.stride.empty() ? 1 : Op.stride[d],
                           Op.dilation.empty() ? 1 : Op.dilation[d],
                           Op.pads.empty() ? 0 : Op.pads[d],
                           Op.pads.empty() ? 0 : Op.pads[axes + d]};
    return a;
  }();

  struct window {
    std::int64_t low, high, whole;
  };
  template <std::size_t D> static KILN_FN window at(std::int64_t position) {
    constexpr dim d = dims.d[D];
    const std::int64_t start = position * d.stride - d.begin, reach = d.length * d.dilation, padded = d.in + d.end;
    window w{start, start + reach, d.length};
    if constexpr (d.begin > 0)
      if (start < 0) w.low = start + (-start + d.dilation - 1) / d.dilation * d.dilation;
    if constexpr ((d.out - 1) * d.stride - d.begin + (d.length - 1) * d.dilation >= d.in) {
      w.whole = ((start + reach < padded ? start + reach : padded) - start + d.dilation - 1) / d.dilation;
      if (w.high > d.in) w.high = d.in;
    }
    return w;
  }

  template <class V> static KILN_FN V fold(V acc, V v) {
    if constexpr (Op.mode == op::pooling_mode::max) return kiln::max(acc, v);
    if constexpr (Op.mode == op::pooling_mode::average) return acc + v;
    const V magnitude = kiln::abs(v);
    V power = magnitude;
    for (std::int64_t i = 1; i < Op.lp_order; ++i) power *= magnitude;
    return acc + power;
  }
  static KILN_FN value finish(value acc, std::int64_t count) {
    if constexpr (Op.mode == op::pooling_mode::average) return count ? acc / static_cast<value>(count) : value(0);
    if constexpr (Op.mode == op::pooling_mode::lp && Op.lp_order == 2) return kiln::sqrt(acc);
    if constexpr (Op.mode == op::pooling_mode::lp && Op.lp_order > 2)
      return kiln::pow(acc, value(1) / static_cast<value>(Op.lp_order));
    return acc;
  }
  static constexpr value start_value() {
    if constexpr (Op.mode != op::pooling_mode::max)
      return 0;
    else if constexpr (std::is_floating_point_v<value>)
      return -std::numeric_limits<value>::infinity();
    else
      return static_cast<value>(std::numeric_limits<stored>::lowest());
  }

  // ---- windows that all lie inside, side by side or every other element: vectors of results
  static constexpr bool clipped(const dim& d) {
    return d.begin > 0 || (d.out - 1) * d.stride - d.begin + (d.length - 1) * d.dilation >= d.in;
  }
  static constexpr dim inner = dims.d[2];
  static constexpr bool vectors = std::is_same_v<value, stored> && std::is_floating_point_v<value> &&
                                  Op.mode != op::pooling_mode::lp && !clipped(dims.d[0]) && !clipped(dims.d[1]) &&
                                  !clipped(inner) && inner.in_step == 1 && inner.out_step == 1 && inner.dilation == 1 &&
                                  inner.stride <= 2 && inner.out >= 2;
  static constexpr int lanes = [] {
    int n = 2;
    while (2 * n <= inner.out && 2 * n <= native_lanes<float>) n *= 2;
    return n;
  }();
  template <class V, int... Lane> static KILN_FN V every_other(V low, V high, std::integer_sequence<int, Lane...>) {
    return __builtin_shufflevector(low, high, (Lane < lanes / 2 ? 2 * Lane : 2 * Lane + 1)...);
  }
  static KILN_FN void row_of_vectors(const stored* x, stored* y) {
    constexpr dim p = dims.d[0], q = dims.d[1];
    using V = vec<stored, lanes>;
    for (std::int64_t c = 0; c < inner.out; c += lanes) {
      const std::int64_t at = c + lanes <= inner.out ? c : inner.out - lanes;  // the last vector overlaps
      V acc = splat<V>(start_value());
      for (std::int64_t i = 0; i < p.length; ++i)
        for (std::int64_t j = 0; j < q.length; ++j)
          for (std::int64_t k = 0; k < inner.length; ++k) {
            const stored* const from =
                x + i * p.dilation * p.in_step + j * q.dilation * q.in_step + at * inner.stride + k;
            if constexpr (inner.stride == 1)
              acc = fold(acc, load<V>(from));
            else  // the second vector begins one element early, so that nothing after the last one is read
              acc = fold(
                  acc, every_other(load<V>(from), load<V>(from + lanes - 1), std::make_integer_sequence<int, lanes>{}));
          }
      if constexpr (Op.mode == op::pooling_mode::average)
        acc = acc / splat<V>(static_cast<value>(p.length * q.length * inner.length));
      store(y + at, acc);
    }
  }

  // ---- NHWC: vectors of channels of a pixel
  static constexpr bool of_channels = std::is_same_v<value, stored> && std::is_floating_point_v<value> &&
                                      Op.mode != op::pooling_mode::lp && in.lens[1] > 1 && in.strides[1] == 1 &&
                                      out.strides[1] == 1;
  static KILN_FN void pixel(const stored* x, stored* y, const window& u, const window& v, const window& w) {
    constexpr dim p = dims.d[0], q = dims.d[1], r = dims.d[2];
    using V = native_vec<stored>;
    constexpr std::int64_t step = native_lanes<stored>, whole = in.lens[1] / step * step;
    std::int64_t inside = Op.count_include_pad ? u.whole * v.whole * w.whole : 0;
    if constexpr (Op.mode == op::pooling_mode::average && !Op.count_include_pad) {
      const auto taps = [](const window& a, std::int64_t dilation) {
        return a.high > a.low ? (a.high - a.low + dilation - 1) / dilation : 0;
      };
      inside = taps(u, p.dilation) * taps(v, q.dilation) * taps(w, r.dilation);
    }
    // vectors side by side share a tap's place, and do not wait for each other
    const auto channels = [&]<int Vectors, int N>(std::int64_t c) {
      constexpr dim p = dims.d[0], q = dims.d[1], r = dims.d[2];  // g++ 12 crashes where it captures the outer ones
      V acc[Vectors];
#pragma GCC unroll 4
      for (int s = 0; s < Vectors; ++s) acc[s] = splat<V>(start_value());
      for (std::int64_t i = u.low; i < u.high; i += p.dilation)
        for (std::int64_t j = v.low; j < v.high; j += q.dilation)
          for (std::int64_t k = w.low; k < w.high; k += r.dilation) {
            const stored* const from = x + i * p.in_step + j * q.in_step + k * r.in_step + c;
#pragma GCC unroll 4
            for (int s = 0; s < Vectors; ++s)
              acc[s] = fold(acc[s], N == step ? load<V>(from + s * step) : load_n<V>(from, N));
          }
#pragma GCC unroll 4
      for (int s = 0; s < Vectors; ++s) {
        if constexpr (Op.mode == op::pooling_mode::average)
          acc[s] = inside ? acc[s] / splat<V>(static_cast<value>(inside)) : V{};
        if constexpr (N == step)
          store(y + c + s * step, acc[s]);
        else
          store_n(y + c, acc[s], N);
      }
    };
    constexpr int lanes_of_vector = static_cast<int>(step);
    constexpr std::int64_t fours = whole / (4 * step) * 4 * step;
    for (std::int64_t c = 0; c < fours; c += 4 * step) channels.template operator()<4, lanes_of_vector>(c);
    if constexpr (fours != whole)
      channels.template operator()<static_cast<int>((whole - fours) / step), lanes_of_vector>(fours);
    if constexpr (whole != in.lens[1]) channels.template operator()<1, static_cast<int>(in.lens[1] - whole)>(whole);
  }

  static KILN_FN void run(const step_memory& m) {
    constexpr dim p = dims.d[0], q = dims.d[1], r = dims.d[2];
    const auto* const from = buffer_of<Step, 0>(m);
    auto* const to = buffer_of<Step, Step::inputs>(m);
    if constexpr (of_channels) {
      for (std::int64_t n = 0; n < in.lens[0]; ++n)
        for (std::int64_t a = 0; a < p.out; ++a)
          for (std::int64_t b = 0; b < q.out; ++b)
            for (std::int64_t c = 0; c < r.out; ++c)
              pixel(from + in.offset + n * in.strides[0],
                    to + out.offset + n * out.strides[0] + a * p.out_step + b * q.out_step + c * r.out_step, at<0>(a),
                    at<1>(b), at<2>(c));
      return;
    }
    for (std::int64_t plane = 0; plane < in.lens[0] * in.lens[1]; ++plane) {
      const auto* const x = from + element_offset<Step, 0, 2>(plane);
      auto* const y = to + element_offset<Step, Step::inputs, 2>(plane);
      for (std::int64_t a = 0; a < p.out; ++a)
        for (std::int64_t b = 0; b < q.out; ++b) {
          if constexpr (vectors) {
            row_of_vectors(x + a * p.stride * p.in_step + b * q.stride * q.in_step,
                           y + a * p.out_step + b * q.out_step);
            continue;
          }
          for (std::int64_t c = 0; c < r.out; ++c) {
            const window u = at<0>(a), v = at<1>(b), w = at<2>(c);
            value acc = start_value();
            std::int64_t inside = 0;
            for (std::int64_t i = u.low; i < u.high; i += p.dilation)
              for (std::int64_t j = v.low; j < v.high; j += q.dilation)
                for (std::int64_t k = w.low; k < w.high; k += r.dilation, ++inside)
                  acc = fold(acc, convert_value<value>(x[i * p.in_step + j * q.in_step + k * r.in_step]));
            y[a * p.out_step + b * q.out_step + c * r.out_step] =
                convert_value<stored>(finish(acc, Op.count_include_pad ? u.whole * v.whole * w.whole : inside));
          }
        }
    }
  }
};

}  // namespace kiln::aot
