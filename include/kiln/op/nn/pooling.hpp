#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/evaluation.hpp"
#include "kiln/op/linear/window.hpp"

namespace kiln::op {

enum class pooling_mode : std::uint8_t { max, average, lp };

constexpr std::string_view to_string(pooling_mode m) { return enumerator_name(m, {"max", "average", "lp"}); }

/// Folds windows of x[n, c, spatial...] over one to three spatial dims (ONNX MaxPool, AveragePool, LpPool): the
/// greatest element, the mean, or (sum of |x|^lp_order)^(1 / lp_order). `pads` holds all begins, then all ends; padding
/// is never a maximum and counts in a mean only with `count_include_pad`. With `ceil_mode` a last, partial window is
/// kept unless it starts in the end padding.
struct pooling {
  pooling_mode mode = pooling_mode::max;
  spatial lengths{}, stride{}, dilation{};
  ints pads{};
  bool ceil_mode = false;
  bool count_include_pad = false;
  std::int64_t lp_order = 2;
  static constexpr auto types = dtypes::numbers;

  constexpr pooling normalized(std::span<const shape> in) const { return detail::with_window(*this, in); }
  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return fault::of(errc::invalid_argument, "number of inputs", 1, in.size());
    const shape& x = in[0];
    if (!(mode == pooling_mode::max ? types : dtypes::floats).contains(x.type))
      return fault::of(errc::unsupported, "dtype of the operand", "one that the op computes in", x.type);
    const auto window = detail::resolve_window(x.rank(), stride, dilation, pads);
    if (!window) return window.why();
    const std::size_t axes = x.rank() - 2;
    if (lengths.size() != axes)
      return fault::of(errc::shape_mismatch, "lengths has an entry for each spatial dim", axes, lengths.size());
    if (mode == pooling_mode::lp && lp_order < 1)
      return fault::of(errc::invalid_argument, "lp_order is positive", "at least 1", lp_order);
    if (mode == pooling_mode::lp && lp_order > 64)  // each element is multiplied that often
      return fault::of(errc::limit, "lp_order is within its limit", "at most 64", lp_order);
    shape out{x.type, {x.lens[0], x.lens[1]}};
    for (std::size_t d = 0; d < axes; ++d) {
      const dimension extent = x.lens[d + 2];
      if (const auto f = detail::window_fault(extent, lengths[d], *window, d)) return *f;
      if (!ceil_mode) {
        out.lens.push_back(detail::window_count(extent, lengths[d], *window, d));
        continue;
      }
      const std::int64_t s = window->stride[d];
      const dimension partial = detail::window_count(extent + (s - 1), lengths[d], *window, d),
                      starting_inside = (extent + window->begin[d] + (s - 1)) / s;
      out.lens.push_back(smaller(partial, starting_inside));
    }
    return out;
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto x = e.template in<T>(0);
    const auto y = e.template out<T>();
    const detail::window w = detail::resolve_window(x.rank(), stride, dilation, pads).value();
    // missing spatial dims have extent 1, so that one loop serves one to three
    std::int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, step[3] = {1, 1, 1};
    for (std::size_t d = 0; d + 2 < x.rank(); ++d) {
      in[d] = x.lens[d + 2], out[d] = y.lens[d + 2], step[d] = w.dilation[d];
    }
    const std::int64_t planes = x.lens[0] * x.lens[1], plane = in[0] * in[1] * in[2];
    std::int64_t at = 0;
    for (std::int64_t p = 0; p < planes; ++p)
      for (std::int64_t a = 0; a < out[0]; ++a)
        for (std::int64_t b = 0; b < out[1]; ++b)
          for (std::int64_t c = 0; c < out[2]; ++c) {
            // [low, high) is the window inside the input; `whole` counts what also lies in the stated padding
            std::int64_t low[3] = {}, high[3] = {1, 1, 1}, whole = 1;
            const std::int64_t position[3] = {a, b, c};
            for (std::size_t d = 0; d + 2 < x.rank(); ++d) {
              const std::int64_t start = position[d] * w.stride[d] - w.begin[d], reach = lengths[d] * step[d];
              const std::int64_t padded = in[d] + w.end[d];
              low[d] = start < 0 ? start + (-start + step[d] - 1) / step[d] * step[d] : start;
              high[d] = start + reach < in[d] ? start + reach : in[d];
              whole *= ((start + reach < padded ? start + reach : padded) - start + step[d] - 1) / step[d];
            }
            std::int64_t inside = 0;
            auto acc = start_value<T>(e.out_shape(0).type);
            for (std::int64_t i = low[0]; i < high[0]; i += step[0])
              for (std::int64_t j = low[1]; j < high[1]; j += step[1])
                for (std::int64_t k = low[2]; k < high[2]; k += step[2], ++inside)
                  acc = fold<T>(acc, x[p * plane + (i * in[1] + j) * in[2] + k]);
            y[at++] = finish<T>(acc, count_include_pad ? whole : inside);
          }
  }

 private:
  template <class T> using sum_type = std::conditional_t<std::is_same_v<T, float>, double, T>;

  template <class T> constexpr sum_type<T> start_value(dtype t) const {
    if (mode != pooling_mode::max) return 0;
    if constexpr (std::is_floating_point_v<T>)
      return -std::numeric_limits<sum_type<T>>::infinity();
    else
      return is_signed_integer(t) ? static_cast<T>(std::int64_t{-1} << (8 * size_of(t) - 1)) : T(0);
  }
  template <class T> constexpr sum_type<T> fold(sum_type<T> acc, T value) const {
    const auto v = static_cast<sum_type<T>>(value);
    if (mode == pooling_mode::max) return v > acc || v != v ? v : acc;
    if (mode == pooling_mode::average) return acc + v;
    const sum_type<T> magnitude = v < 0 ? 0 - v : v;
    sum_type<T> power = magnitude;
    for (std::int64_t i = 1; i < lp_order; ++i) power *= magnitude;
    return acc + power;
  }
  template <class T> constexpr T finish(sum_type<T> acc, std::int64_t count) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (mode == pooling_mode::average) return count ? static_cast<T>(acc / static_cast<double>(count)) : T(0);
      if (mode == pooling_mode::lp) {
        if (lp_order == 2) return static_cast<T>(kiln::sqrt(acc));
        if (lp_order != 1) return static_cast<T>(kiln::pow(acc, 1.0 / static_cast<double>(lp_order)));
      }
    }
    return static_cast<T>(acc);
  }
};

}  // namespace kiln::op
