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
    if (const auto f = detail::indexed_fault(in, 3, axis)) return *f;
    const shape &data = in[0], &indices = in[1], &updates = in[2];
    if (const auto f = detail::update_fault(data, updates, reduction)) return *f;
    if (const auto f = detail::elementwise_index_fault(data, indices, axis)) return *f;
    if (!(indices.lens == updates.lens))
      return fault::of(errc::shape_mismatch, "updates and indices have equal dims", indices.lens, updates.lens);
    return shape{data.type, data.lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto [data, indices, out] = detail::gather_operands<T>(e);
    const auto updates = e.template in<T>(2);
    for (std::int64_t i = 0, n = data.size(); i < n; ++i) out[i] = data[i];
    const auto a = static_cast<std::size_t>(normal_axis(axis, data.rank()));
    ints at = first_index(indices.lens);
    for (std::int64_t k = 0, n = indices.size(); k < n; ++k) {
      ints to = at;
      to[a] = e.index(indices[k], data.lens[a]);
      T& element = out.at(to);
      element = detail::updated<T>(reduction, element, updates[k]);
      next_index(at, indices.lens);
    }
  }
};

}  // namespace kiln::op
