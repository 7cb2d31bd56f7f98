#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// The upper or lower triangle of each matrix [..., m, n], zero elsewhere (ONNX Trilu): upper keeps columns j >= i + k
/// of row i, lower keeps j <= i + k.
struct tri {
  bool upper = true;
  std::int64_t k = 0;
  static constexpr auto types = dtypes::movable | dtypes::dims;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (in.size() != 1) return detail::wrong_operand_count(1, in.size());
    if (in[0].rank() < 2)
      return fault::of(errc::shape_mismatch, "the operand holds matrices", "rank of at least 2", in[0].rank());
    return shape{in[0].type, in[0].lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto in = e.template in<T>(0);
    const auto out = e.template out<T>();
    const std::int64_t rows = in.lens[in.rank() - 2], columns = in.lens[in.rank() - 1];
    for (std::int64_t at = 0, n = in.size(); at < n; ++at) {
      const std::int64_t i = at / columns % rows, j = at % columns;
      out[at] = (upper ? j - i >= k : j - i <= k) ? in[at] : T(0);
    }
  }
};

}  // namespace kiln::op
