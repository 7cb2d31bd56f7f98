#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// One element of data for each index (ONNX GatherElements): the index replaces the position along `axis`, the other
/// positions stay. Negative indices count from the end; one outside the extent is an error of the run.
struct gather_elements {
  std::int64_t axis = 0;
  static constexpr auto types = dtypes::movable | dtypes::dims;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::indexed_fault(in, 2, axis)) return *f;
    if (const auto f = detail::elementwise_index_fault(in[0], in[1], axis)) return *f;
    return shape{in[0].type, in[1].lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto [data, indices, out] = detail::gather_operands<T>(e);
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
