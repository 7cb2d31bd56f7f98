#pragma once
#include "kiln/core/math/philox.hpp"
#include "kiln/op/index/common.hpp"

namespace kiln::op {

/// Numbers in [low, high) of 53 bits each, which their places and the seed alone determine (`philox`): every run gives
/// the same ones, on every target. Without operands.
struct random_uniform {
  dims lens{};
  double low = 0, high = 1;
  std::uint32_t seed = 0;
  dtype type = dtype::f32;
  static constexpr auto types = dtypes::floats;
  static constexpr bool pure = false;

  constexpr result<shape> compute_shape(std::span<const shape> in) const {
    if (!in.empty()) return detail::wrong_operand_count(0, in.size());
    if (!types.contains(type)) return fault::of(errc::unsupported, "dtype of the result", "a float", type);
    return shape{type, lens};
  }

  template <class T> constexpr void compute(Evaluation auto& e) const {
    const auto out = e.template out<T>();
    for (std::int64_t k = 0, n = out.size(); k < n; k += 2) {
      const philox drawn(static_cast<std::uint64_t>(k / 2), seed);
      for (int j = 0; j < 2 && k + j < n; ++j) out[k + j] = static_cast<T>(low + (high - low) * drawn.number(j));
    }
  }
};

}  // namespace kiln::op
