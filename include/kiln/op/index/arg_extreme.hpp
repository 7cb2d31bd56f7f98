#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::detail {

/// The shape rule that arg_max and arg_min share: an i64 result whose extent along the axis is 1.
constexpr result<shape> arg_extreme_shape(std::span<const shape> in, std::int64_t axis, dtype_set types) {
  if (const auto f = axis_fault(in, axis, types)) return *f;
  shape out{dtype::i64, in[0].lens};
  dimension& extent = out.lens[static_cast<std::size_t>(normal_axis(axis, in[0].rank()))];
  if (extent == dimension(0))
    return fault::of(errc::shape_mismatch, "the axis has an element to choose", "at least 1", extent);
  extent = 1;
  return out;
}

/// The index along `axis` of the element that `better` than all others: the first one, or the last of equals. A NaN is
/// better than any number.
template <class T, class Better>
constexpr void arg_extreme(Evaluation auto& e, std::int64_t axis, bool last_of_equals, Better better) {
  const auto in = e.template in<T>(0);
  const auto out = e.template out<std::int64_t>();
  const auto s = split_at(in.lens, axis);
  for (std::int64_t o = 0; o < s.outer; ++o)
    for (std::int64_t i = 0; i < s.inner; ++i) {
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < s.extent; ++k) {
        const T x = in[(o * s.extent + k) * s.inner + i], b = in[(o * s.extent + best) * s.inner + i];
        const bool x_nan = x != x, b_nan = b != b, equal = x == b || (x_nan && b_nan);
        if (equal ? last_of_equals : !b_nan && (x_nan || better(x, b))) best = k;
      }
      out[o * s.inner + i] = best;
    }
}

}  // namespace kiln::detail
