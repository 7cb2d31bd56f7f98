#pragma once
#include "kiln/core/math.hpp"
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// Each element along each of `axes` is a sum of a few of x's along that axis, or one of them (ONNX Resize): x, then
/// for each axis the integer positions[taps, extent] of the taps of each of its new elements and, where `weighted`,
/// their weights[taps, extent], floats. Positions count from the end where they are negative; one outside the extent is
/// an `invalid_argument` error of the run. Sums of several axes are rounded once. Sums of bytes are cut to whole
/// numbers toward zero, those that lie less than `byte_slack` below the next one count as it, and saturate.
struct resample {
  ints axes{};
  bool weighted = true;

  static constexpr dtype_set types_of_sums = dtypes::floats | dtype_set{0x0110};
  static constexpr auto types = dtypes::movable;
  /// Rounding of single-precision sums of bytes stays below it.
  static constexpr double byte_slack = 1.0 / 4096;

  /// The operand that has the positions along `axes[k]`; their weights follow.
  constexpr std::size_t table(std::size_t k) const { return 1 + k * (weighted ? 2 : 1); }

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != table(axes.size()))
      return detail::wrong_operand_count(static_cast<std::int64_t>(table(axes.size())), in.size());
    if (!(weighted ? types_of_sums : types).contains(in[0].type)) return detail::wrong_operand_type(in[0].type);
    shape out{in[0].type, in[0].lens};
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if (axes[k] < 0 || axes[k] >= static_cast<std::int64_t>(out.rank()))
        return detail::wrong_axis(out.rank(), axes[k]);
      if (k > 0 && axes[k] <= axes[k - 1])
        return fault::of(errc::invalid_argument, "axes ascend", axes[k - 1] + 1, axes[k]);
      const shape& at = in[table(k)];
      if (!is_signed_integer(at.type)) return detail::wrong_index_type(at.type);
      if (at.rank() != 2) return fault::of(errc::shape_mismatch, "positions are [taps, extent]", "rank 2", at.lens);
      if (!at.lens[0].is_constant() || at.lens[0].value() < 1)
        return fault::of(errc::shape_mismatch, "the taps are a number known here, at least 1", 1, at.lens[0]);
      if (!weighted && !(at.lens[0] == dimension(1)))
        return fault::of(errc::shape_mismatch, "there is one tap where nothing is weighted", 1, at.lens[0]);
      if (weighted && (!is_float(in[table(k) + 1].type) || !(in[table(k) + 1].lens == at.lens)))
        return fault::of(errc::shape_mismatch, "there is a weight, a float, for each position", at.lens,
                         in[table(k) + 1].lens);
      out.lens[static_cast<std::size_t>(axes[k])] = at.lens[1];
    }
    return out;
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto x = e.template in<T>(0);
    const auto y = e.template out<T>();
    if (y.size() == 0) return;
    std::int64_t step[max_rank] = {}, taps[max_rank] = {}, to[max_rank] = {}, tap[max_rank] = {};
    const std::int64_t* positions[max_rank] = {};
    const float* weights[max_rank] = {};
    const double* wide_weights[max_rank] = {};
    for (std::size_t d = x.rank(), s = 1; d-- > 0; s *= static_cast<std::size_t>(x.lens[d]))
      step[d] = static_cast<std::int64_t>(s);
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const auto table_of_axis = e.template in<std::int64_t>(table(k));
      positions[k] = table_of_axis.data;
      taps[k] = table_of_axis.lens[0];
      if (weighted && e.in_shape(table(k) + 1).type == dtype::f64)
        wide_weights[k] = e.template in<double>(table(k) + 1).data;
      else if (weighted)
        weights[k] = e.template in<float>(table(k) + 1).data;
    }
    for (std::int64_t i = 0, n = y.size(); i < n; ++i) {
      std::int64_t from = 0, rest = i;
      for (std::size_t d = y.rank(), k = axes.size(); d-- > 0; rest /= y.lens[d]) {
        to[d] = rest % y.lens[d];
        if (k > 0 && axes[k - 1] == static_cast<std::int64_t>(d))
          --k;
        else
          from += to[d] * step[d];
      }
      // each combination of taps of the axes
      double sum = 0;
      for (bool more = !no_taps(taps); more;) {
        std::int64_t at = from;
        double weight = 1;
        for (std::size_t k = 0; k < axes.size(); ++k) {
          const auto d = static_cast<std::size_t>(axes[k]);
          const std::int64_t slot = tap[k] * y.lens[d] + to[d];
          at += e.index(positions[k][slot], x.lens[d]) * step[d];
          if (weighted) weight *= wide_weights[k] ? wide_weights[k][slot] : static_cast<double>(weights[k][slot]);
        }
        if (!weighted) y[i] = x[at];
        if constexpr (std::is_convertible_v<T, double>)
          if (weighted) sum += weight * static_cast<double>(x[at]);
        more = false;
        for (std::size_t k = axes.size(); k-- > 0 && !more;) {
          more = ++tap[k] < taps[k];
          if (!more) tap[k] = 0;
        }
      }
      if constexpr (std::is_convertible_v<double, T>)
        if (weighted) y[i] = static_cast<T>(is_float(e.in_shape(0).type) ? sum : byte_of(sum, e.in_shape(0).type));
    }
  }

 private:
  constexpr bool no_taps(const std::int64_t* taps) const {
    for (std::size_t k = 0; k < axes.size(); ++k)
      if (taps[k] == 0) return true;
    return false;
  }
  static constexpr double byte_of(double sum, dtype t) {
    const double low = t == dtype::u8 ? 0 : -128, high = t == dtype::u8 ? 255 : 127;
    const double near = sum < 0 ? kiln::ceil(sum - byte_slack) : kiln::floor(sum + byte_slack);
    return near < low ? low : near > high ? high : near;
  }
};

}  // namespace kiln::op
