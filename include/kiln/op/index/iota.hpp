#pragma once
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// A tensor without operands whose elements are their own index along `axis`.
struct iota {
  dims lens{};
  std::int64_t axis = 0;
  dtype type = dtype::i64;
  static constexpr bool axes_of_result = true;
  static constexpr auto types = dtypes::numbers;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (!in.empty()) return detail::wrong_operand_count(0, in.size());
    if (!types.contains(type)) return fault::of(errc::unsupported, "dtype of the result", "a number", type);
    if (normal_axis(axis, lens.size()) < 0) return detail::wrong_axis(lens.size(), axis);
    return shape{type, lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto out = e.template out<T>();
    const auto s = detail::split_at(out.lens, axis);
    for (std::int64_t k = 0, n = out.size(); k < n; ++k) out[k] = static_cast<T>(k / s.inner % s.extent);
  }
};

}  // namespace kiln::op
