#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// Slices of data along `axis`, picked by integer indices of any rank (ONNX Gather): the indices' dims stand in for the
/// axis. Negative indices count from the end; one outside the extent is an `invalid_argument` error of the run.
struct gather {
  std::int64_t axis = 0;
  static constexpr auto types = dtypes::movable | dtypes::dims;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (const auto f = detail::indexed_fault(in, 2, axis)) return *f;
    const shape &data = in[0], &indices = in[1];
    const auto at = static_cast<std::size_t>(normal_axis(axis, data.rank()));
    detail::collected_dims out;
    out.add(data.lens, 0, at);
    out.add(indices.lens, 0, indices.rank());
    out.add(data.lens, at + 1, data.rank());
    return out.as(data.type);
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto [data, indices, out] = detail::gather_operands<T>(e);
    const auto s = detail::split_at(data.lens, axis);
    const std::int64_t n = indices.size();
    for (std::int64_t o = 0; o < s.outer; ++o)
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t from = (o * s.extent + e.index(indices[k], s.extent)) * s.inner;
        for (std::int64_t i = 0; i < s.inner; ++i) out[(o * n + k) * s.inner + i] = data[from + i];
      }
  }
};

}  // namespace kiln::op
