#pragma once
#include "kiln/op/index/scatter_mode.hpp"

namespace kiln::op {

/// A copy of data in which each update replaces, or is combined with, the element at its own position with the index
/// along `axis` (ONNX ScatterElements). Inputs: data, indices, updates. Updates apply in order; negative indices count
/// from the end; one outside the extent is an error of the run.
struct scatter_elements {
  std::int64_t axis = 0;
  scatter_mode reduction = scatter_mode::none;
  static constexpr auto types = dtypes::movable | dtypes::dims;

  void agree(extent_agreement& extents) const {
    if (extents.operands() != 3 || extents.rank(1) != extents.rank(2)) return;
    for (std::size_t d = 0; d < extents.rank(1); ++d) extents.agree(2, d, 1, d);
  }
  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 3) return detail::wrong_operand_count(3, in.size());
    const shape &data = in[0], &indices = in[1], &updates = in[2];
    const std::int64_t a = normal_axis(axis, data.rank());
    if (a < 0) return detail::wrong_axis(data.rank(), axis);
    if (!is_integer(indices.type)) return detail::wrong_index_type(indices.type);
    if (is_object(data.type) && reduction != scatter_mode::none)
      return fault::of(errc::shape_mismatch, "dtype that elements are combined in", "a number", data.type);
    if (updates.type != data.type)
      return fault::of(errc::shape_mismatch, "updates have the data's dtype", data.type, updates.type);
    if (indices.rank() != data.rank())
      return fault::of(errc::shape_mismatch, "indices have the data's rank", data.rank(), indices.rank());
    if (!(indices.lens == updates.lens))
      return fault::of(errc::shape_mismatch, "updates and indices have equal dims", indices.lens, updates.lens);
    for (std::size_t d = 0; d < data.rank(); ++d) {
      const auto fits = at_most(indices.lens[d], data.lens[d]);
      if (static_cast<std::int64_t>(d) != a && fits && !*fits)
        return fault::of(errc::shape_mismatch, "indices reach no further than the data beside the axis", data.lens,
                         indices.lens);
    }
    return shape{data.type, data.lens};
  }

  template <class T>
  constexpr void compute(evaluation& e) const {
    const auto data = e.in<T>(0), updates = e.in<T>(2);
    const auto indices = e.in<std::int64_t>(1);
    const auto out = e.out<T>();
    for (std::int64_t i = 0, n = data.size(); i < n; ++i) out[i] = data[i];
    const auto a = static_cast<std::size_t>(normal_axis(axis, data.rank()));
    ints at(indices.rank(), 0);
    for (std::int64_t k = 0, n = indices.size(); k < n; ++k) {
      ints to = at;
      to[a] = detail::checked_index(indices[k], data.lens[a]);
      T& element = out.at(to);
      element = detail::updated<T>(reduction, element, updates[k]);
      next_index(at, indices.lens);
    }
  }
};

}  // namespace kiln::op
