#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// One element of data for each index (ONNX GatherElements): the index replaces the position along `axis`, the other
/// positions stay. Negative indices count from the end; one outside the extent is an error of the run.
struct gather_elements {
  std::int64_t axis = 0;
  static constexpr auto types = dtypes::movable | dtypes::dims;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 2) return detail::wrong_operand_count(2, in.size());
    const shape &data = in[0], &indices = in[1];
    const std::int64_t a = normal_axis(axis, data.rank());
    if (a < 0) return detail::wrong_axis(data.rank(), axis);
    if (!is_integer(indices.type)) return detail::wrong_index_type(indices.type);
    if (indices.rank() != data.rank())
      return fault::of(errc::shape_mismatch, "indices have the data's rank", data.rank(), indices.rank());
    for (std::size_t d = 0; d < data.rank(); ++d) {
      const auto fits = at_most(indices.lens[d], data.lens[d]);
      if (static_cast<std::int64_t>(d) != a && fits && !*fits)
        return fault::of(errc::shape_mismatch, "indices reach no further than the data beside the axis", data.lens,
                         indices.lens);
    }
    return shape{data.type, indices.lens};
  }

  template <class T>
  constexpr void compute(Evaluation auto& e) const {
    const auto data = e.template in<T>(0);
    const auto indices = e.template in<std::int64_t>(1);
    const auto out = e.template out<T>();
    const auto a = static_cast<std::size_t>(normal_axis(axis, data.rank()));
    ints at = first_index(indices.lens);
    for (std::int64_t k = 0, n = indices.size(); k < n; ++k) {
      ints from = at;
      from[a] = e.index(indices[k], data.lens[a]);
      out[k] = data.at(from);
      next_index(at, indices.lens);
    }
  }
};

}  // namespace kiln::op
