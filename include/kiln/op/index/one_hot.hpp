#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// A new dim of extent `depth` at `axis` of the result that holds values[1] at each index and values[0] elsewhere (ONNX
/// OneHot). Inputs: integer indices, values[2] of the result's dtype. Indices in [-depth, 0) count from the end; those
/// outside [-depth, depth) give values[0] only.
struct one_hot {
  dimension depth = 1;
  std::int64_t axis = -1;
  static constexpr bool axes_of_result = true;
  static constexpr auto types = dtypes::movable;
  static constexpr int typed_input = 1;

  void agree(extent_agreement& extents) const {
    if (extents.operands() == 2 && extents.rank(1) == 1) extents.want(1, 0, 2);
  }
  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 2) return detail::wrong_operand_count(2, in.size());
    const shape &indices = in[0], &values = in[1];
    if (!is_integer(indices.type)) return detail::wrong_index_type(indices.type);
    if (!(values.lens == dims{2}))
      return fault::of(errc::shape_mismatch, "values are the off value and the on value", dims{2}, values.lens);
    if (const auto some = at_most(0, depth); some && !*some)
      return fault::of(errc::invalid_argument, "depth is not negative", "at least 0", depth);
    const std::int64_t a = normal_axis(axis, indices.rank() + 1);
    if (a < 0) return detail::wrong_axis(indices.rank() + 1, axis);
    detail::collected_dims out;
    out.add(indices.lens, 0, static_cast<std::size_t>(a));
    out.lens.push_back(depth);
    out.add(indices.lens, static_cast<std::size_t>(a), indices.rank());
    return out.as(values.type);
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto indices = e.template in<std::int64_t>(0);
    const auto values = e.template in<T>(1);
    const auto out = e.template out<T>();
    const auto s = detail::split_at(out.lens, axis);
    for (std::int64_t o = 0; o < s.outer; ++o)
      for (std::int64_t k = 0; k < s.extent; ++k)
        for (std::int64_t i = 0; i < s.inner; ++i) {
          const std::int64_t index = indices[o * s.inner + i];
          out[(o * s.extent + k) * s.inner + i] = values[index == k || index + s.extent == k ? 1 : 0];
        }
  }
};

}  // namespace kiln::op
